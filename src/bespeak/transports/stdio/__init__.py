"""Messages as lines on standard input and output."""
