"""Tests of the comparison with other frameworks."""
