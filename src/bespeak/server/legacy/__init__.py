"""Clients of 2025-11-25 and earlier: their connections, and pushing questions to them."""
