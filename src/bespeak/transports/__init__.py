"""Bytes in, bytes out: how requests reach a server."""
