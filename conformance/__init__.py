"""The official conformance suite of MCP, run against our server and our client."""
