"""What a curator is told of the tables: keys, bounds, what is left out. Confidential."""
