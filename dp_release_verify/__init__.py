"""Verifies a release of dp-release from its files, with the standard library alone."""
