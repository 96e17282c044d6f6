"""Programs as people write them for the official Python SDK. `tests/test_moved_programs.py` moves them to Bespeak."""
