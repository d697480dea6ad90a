"""Choosing and solving for the mechanism of each query."""
