"""The messages on the wire as plain data: requests, errors, versions, capabilities, forms and headers. No I/O."""
