"""The URL server: the frontier as a SOAP service.

    service.py  what each operation does, in plain Python     soap.py  the SOAP contract, the only importer of spyne
    journal.py  console lines, blacklist.txt, progress.csv    http.py  threads, TLS, token and size checks
    main.py     the command
"""
