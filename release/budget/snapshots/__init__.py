"""Signed snapshots of a ledger's state, so that an append need not replay the whole ledger."""
