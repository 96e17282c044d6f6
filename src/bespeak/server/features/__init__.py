"""What a server offers: one file for each feature of the protocol."""
