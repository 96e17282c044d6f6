"""What each framework does with a server that asks. Every program here is run by the Python of its framework."""
