"""Attacks on a server over loopback, bounded in count and time, with an honest client beside them: `python -m siege`."""
