"""What a release costs, and the ledger that adds it up."""
