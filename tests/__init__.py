"""Tests: `unit`, `contract`, `integration`, `faults`, and `web`, the servers that they crawl."""
