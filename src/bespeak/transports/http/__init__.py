"""Streamable HTTP, on both sides."""
