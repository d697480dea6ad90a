"""The commands ``dp-release ledger``."""
