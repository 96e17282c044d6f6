"""What a test expects, and comparing the outcome with it."""
