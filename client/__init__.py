"""The worker. A job's life, in the order of the modules:

    coordinator  asks the URL server for a job (SOAP) and sends reports
    schedule     hands out the URL whose host may be asked next
    fetcher      one request of one URL: robots, redirects, limits (download threads; transport, robots below it)
    miner        decodes and mines what came back (datamine threads; links, charset below it)
    bundler      collects pages by domain, writes bundles and the report that belongs to them into the spool
    uploader     sends bundles by FTP
    pipeline     the threads and bounded queues between all of these
    main         the daemon and its command line

Stages are plain functions and objects; only the pipeline owns threads. Each stage turns one value into the next:
Job -> FetchResult -> MinedPage -> Bundle -> Report. A failure travels as an Outcome, never as an exception.
"""
