"""Signing keys: in files, held by what signs for us, and those of witnesses."""
