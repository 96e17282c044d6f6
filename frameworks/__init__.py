"""Agent frameworks that people use, run against our servers."""
