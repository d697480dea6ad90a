"""Sheets of what the sources do not show."""
