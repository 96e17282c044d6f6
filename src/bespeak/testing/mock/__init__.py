"""`bespeak mock`: recorded conversations, served to any client."""
