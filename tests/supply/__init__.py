"""Locks, licenses and bills of materials."""
