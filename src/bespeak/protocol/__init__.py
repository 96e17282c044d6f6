"""The wire, without I/O: envelopes, versions, errors and capabilities."""
