"""Our whole system against Scrapy and wget on one machine, over a site of known pages: `python -m benchmarks.crawl`.

    site (pages) ─► serving (nginx on several loopback hosts)
                        ▲ requests
    contenders ─► measuring (a child that runs one command and counts what all its processes use) ─► report

soak is the other mode: our client alone, on a site without end, and how its memory goes.
"""
