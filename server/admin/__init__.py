"""The operator's side of a crawl: what he can ask and set, on a running server or on the work folder of a stopped one.

    operator   the verbs, in plain Python
    remote     calls them on a running urlServer; calling finds it, or opens the work folder instead
    audit      proves that nothing was lost or taken twice: tables, merging (with the catalogue), bundles -> findings
    doubts     why a page does not count
    repair     mends what it found
    show       answers as lines for a person
    main       the command crawlAdmin
"""
