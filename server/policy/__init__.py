"""What belongs to the crawl. Decides about one URL at a time, without I/O; the frontier records the rule."""
