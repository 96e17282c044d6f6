"""Suite files: what they may say, reading and checking them, and which tests they come to."""
