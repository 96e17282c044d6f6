"""What is said on the wire, as plain data: messages, errors, versions, capabilities, forms and headers. No I/O."""
