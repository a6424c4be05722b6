"""The webs that tests crawl: computed pages with a known link graph, hostile servers, and a real nginx.

- graph, oddities, resources, pages: what there is; pure, computed from a seed
- identity, truth: when two addresses are one page, and what a right crawl comes to
- changes: what a test changes on it between two rounds
- serving, server: a program that serves it
- call, hostile, hostile_*: a program that misbehaves, each way a function, and what has to become of it (hostile_cases)
- child, running, nginx: start such a program from a test
- requestlog: what was asked, and assertions about it
"""
