"""File numbers: how many files and connections a process may have open at the same time."""

import resource


def allow_open_files(wanted: int) -> None:
    """As many as that, or as the system lets us. The usual limit of 1,024 is for programs with few connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
