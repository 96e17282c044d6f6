"""Reading a callable: its parameters, their type hints and markers, and what kind of callable it is."""
