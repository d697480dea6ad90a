"""Estimates from published answers."""
