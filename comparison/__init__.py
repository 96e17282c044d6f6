"""Three frameworks in the same situations, each measured by a small program: `make comparison` writes docs/comparison.md."""
