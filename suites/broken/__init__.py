"""Tills without a framework: one that does everything right, and one for each way to do it wrong."""
