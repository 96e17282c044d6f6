"""Bespeak beside the official SDKs: each side's client with the other side's server, over both transports."""
