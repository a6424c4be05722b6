"""What a user can mend, said in one sentence."""


class BenchmarkError(Exception):
    """The benchmark cannot be run as asked."""
