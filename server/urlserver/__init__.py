"""The URL server: the frontier as a SOAP service.

    service.py  what each operation does, in plain Python     soap.py  the SOAP contract, the only importer of spyne
    journal.py  console lines, blacklist.txt, progress.csv    web.py   an operator's commands as JSON
    markup.py   looks at a message before it is parsed        main.py  the command

A request comes through http.py (listens), connection.py (reads, in one thread), guard.py (looks at its head), budget.py
(large ones wait for their part of the memory), and then gets a thread in wsgi.py.
"""
