"""Stores for the ledger. A store holds claims and bytes. It has no keys and cannot read the bytes."""
