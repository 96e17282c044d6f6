"""Streamable HTTP for clients of 2025-11-25 and earlier: sessions, streams and events."""
