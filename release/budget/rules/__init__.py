"""The account of a scope under each of its rules."""
