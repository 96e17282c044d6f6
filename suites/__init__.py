"""Suites for `bespeak test`, and the servers they run against."""
