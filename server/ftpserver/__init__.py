"""The receiver of the harvest: an FTP account that can hand in bundles, and nothing else. A bundle's way:

    login       a connection before that: it has no thread, and little time
    session     STOR NAME.manifest.part, STOR NAME.part, RNFR, RNTO NAME (the only module with their commands)
    uploads     each file goes to Pages/.incoming/ and is hashed while it comes
    waiting     manifests whose bundle comes in another session
    inbox       at RNTO: verified against the manifest, then renamed into Pages/<domain>/ and handed to the catalogue
    quarantine  where a bundle goes that is not what its manifest says; the client is told to send it again
    accounts    who may log in                      server      connections and threads
    places      how many sessions there may be
    folder      Pages/ belongs to one process       main        the command

The client sees the same in replies: 250 it is stored, 4xx send it again later, 5xx sending it again is of no use.
"""
