"""Where the ledger is kept. A store knows claims and bytes, never keys or meanings."""
