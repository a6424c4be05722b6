"""Holds config.cfg, the configuration with every key explained, so that it is installed with the programs."""
