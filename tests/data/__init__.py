"""The sample tables and the real ones."""
