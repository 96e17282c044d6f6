"""Suite files: their format, loading and checking them, and the plan of tests in them."""
