"""A shop whose price moves while a person thinks, written with the official Python SDK and with Bespeak."""
