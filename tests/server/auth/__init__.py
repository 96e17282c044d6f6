"""Authorization on the side of the server."""
