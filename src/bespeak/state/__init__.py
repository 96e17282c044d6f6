"""What outlives a round: the sealed progress, and the ledger of approvals that are spent."""
