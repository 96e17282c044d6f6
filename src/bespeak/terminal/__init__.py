"""Asking a person at a terminal, and text made safe to show there."""
