"""What a test expects, and whether it came to that."""
