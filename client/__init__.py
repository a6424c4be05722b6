"""The worker. A job's life, in the order of the modules:

    coordinator  asks the URL server for a job (SOAP) and sends reports
    schedule     hands out the URL whose host may be asked next
    fetcher      one request of one URL: robots, redirects, limits (below it: robots with rules, transport with
                 answer, encoding and addresses, fields)
    miner        decodes and mines what came back (below it: charset, links, and reading, which parses HTML)
    listing      the same for sitemaps, which are read and not stored (below it: sitemaps)
    filtering    asks the user's filters whether the page is kept
    bundler      collects pages by domain, writes bundles and the report that belongs to them into the spool
    delivery     parcels of the spool to the servers (uploader sends bundles by FTP; patience waits for servers)
    pipeline     the threads and bounded queues between all of these
    main         the command line (daemonize: pid file and daemon)

Stages are plain functions and objects; only the pipeline owns threads. Each stage turns one value into the next:
Job -> FetchResult -> MinedPage -> Bundle -> Report. A failure travels as an Outcome, never as an exception.
"""
