"""The frontier: every known URL, and whose turn it is.

The life of a URL here:

    add      unknown? -> policy -> excluded (with the rule), or queued at the end of its host's queue
    lease    hosts whose turn it is, each to one client, a few URLs of each -> leased under a job with a deadline
    report   leased -> done, excluded or failed; or queued again, to be tried later (retries.py says when)
    release  the unfinished URLs of a job go back to where they stood in their queues
    expire   the same for jobs whose client has been silent for too long

    frontier.py  the façade with these verbs, thread-safe      records.py  what the records look like on disk
    change.py    one atomic move of many URLs                  store.py    the interface of a store
    turns.py     whose turn it is (in memory)                  rocks.py    the store on RocksDB
    retries.py   outcome -> state, wait, number of tries

Memory holds the hosts and the leases, never the URLs. Every verb is one atomic write, on disk before it returns.
"""
