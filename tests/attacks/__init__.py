"""Attacks from outside, one table for each front. A new one is a new row."""
