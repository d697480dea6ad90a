"""Released tables: what is in them, and how they are written and read."""
