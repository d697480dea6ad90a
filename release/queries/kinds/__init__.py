"""A module for each kind of query: its fields, its answers and their sensitivity."""
