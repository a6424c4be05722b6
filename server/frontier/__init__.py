"""The frontier: every known URL, and whose turn it is.

The life of a URL here:

    add      unknown? -> policy -> excluded (with the rule), or queued at the place that the traversal gives it
    lease    hosts whose turn it is, each to one client, a few URLs of each -> leased under a job with a deadline
    report   leased -> done, excluded or failed; or queued again, to be tried later (retries.py says when)
    release  the unfinished URLs of a job go back to where they stood in their queues
    expire   the same for jobs whose client has been silent for too long
    tick     with a period: done -> queued again when the next visit of the page is due; whatever that brings, then done

    frontier.py  the façade with these verbs and those of an operator; thread-safe
    view.py      what it knows without its lock              locked.py    the lock: the only way to
    memory.py    what it decides with
    intake.py    add            leasing.py  lease, renew            settling.py  report, release, expire
    core.py      what these share: hosts, leases, totals, delays    change.py    one atomic move of many URLs
    hosts.py     what is known of each host                         turns.py     whose turn it is (in memory)
    leases.py    which job has which URLs (in memory)               retries.py   outcome -> state, waits, sign of life
    records.py   what the records look like on disk                 store.py     the interface of a store
    audit.py     proves that the tables agree                       rocks.py     the store on RocksDB
    explaining.py  what it says of itself to a person               mending.py   retries, and what an audit makes good
    order.py     where a URL stands in the queue of its host        limits.py    what may still be leased
    scores.py    scores that an operator gives to URLs              recount.py   counters from the records they count
    reordering.py  what is queued gets the order of another traversal
    visits.py    pages that are visited again, and when             rounds.py    brings them back when they are due
    redating.py  when they are due by another period                sitemaps.py  what sitemaps say
    queued.py    what is queued, piece by piece, for a person       claims.py   which pages in Pages/ count
    jobnames.py  what jobs are called outside, so that nobody guesses it

Memory holds the active hosts and the leased URLs, never all URLs. Every verb is one atomic write, on disk before it
returns (unless durability = normal).
"""
