"""Fixtures for the tests of `bespeak dev`."""

from tests.cli.conftest import write

__all__ = ["write"]
