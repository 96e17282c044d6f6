"""Recorded conversations: writing, replaying and verifying them."""
