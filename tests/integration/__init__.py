"""The real commands over a real web: what was crawled must equal the truth."""
