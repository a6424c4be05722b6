"""Filters of the user: Python functions that say of each page whether it is kept, before it is bundled.

    filters   Filters.judge, called by the datamine threads: asks, and keeps the page whatever happens to a filter
    process   the one process in which the filters of a client process run, seen from outside
    child     the same from inside: loading loads the modules, page is what they get

They run in a process of their own, because a function that hangs cannot be stopped in any other way, and because one
that crashes must not take the crawl with it.
"""
