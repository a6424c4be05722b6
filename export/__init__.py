"""The command crawlExport: the harvest in forms that other programs read.

    stored    the newest revision of each page, bundle by bundle, while the crawl may go on
    index     the index file: a record for each page, and its reader
    records   what an index says of a stored page
    frontier  opens the frontier once, for the next one and for which pages count
    accepted  which of its links belong to the crawl
    names     URL to the file of a page copy
    files     page copies as a folder tree
    output    files that appear completely or not at all
    main      the command

Reads Pages/ and the frontier: no server is asked, stopped or held up.
"""
