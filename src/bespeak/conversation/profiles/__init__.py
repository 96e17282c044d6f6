"""Profiles: clients as they are in the wild, for `--as`."""
