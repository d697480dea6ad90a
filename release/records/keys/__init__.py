"""Signing keys: in files, and held by what signs for us."""
