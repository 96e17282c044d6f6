"""Probes: unusual requests to a live server, and what its answers should be."""
