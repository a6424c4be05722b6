"""Pure tests, seconds in all."""
