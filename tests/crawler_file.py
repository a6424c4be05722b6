"""A classic crawler file, as users of such a system have had it for years."""

EXAMPLE = r'''<crawler-options>
Starting-points = {
    "http://www.csd.uoc.gr/",
    "http://www.ics.forth.gr/",
};
accept-list = { ".*\.[hH][tT][mM][lL]?$", ".*\.[pP][hH][pP]$" };
Reject-list = { ".*\.[tT][mM][pP]\.{0,4}$" };
max-page-number = 1000000;
scope = "domain-scope";            # "free-spanning", "domain-scope", "host-scope", "path-scope"
traversal-algorithm = "bfs";
repository = "./testbedCSDICS";    # page copies end up below here as ./www.ics.forth.gr/index.html
<logging>
log-file = "log";                  # "log" or "screen"
log-level = 1;                     # 0 quiet, 1 verbose, 2 debug
<recrawling-options>
period = 72;
'''
