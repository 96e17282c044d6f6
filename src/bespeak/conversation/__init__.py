"""Holding a conversation with any server as plain JSON: what `bespeak call` and `bespeak test` share."""
