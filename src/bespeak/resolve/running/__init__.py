"""Running one round: its phases, whose turn it is to ask, and generators."""
