"""The programs that docs/frameworks.md shows. Every one here is run by the Python of its framework."""
