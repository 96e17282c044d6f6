"""Keeping secrets out of reports and cassettes."""
