"""Mechanisms of the literature, one file for each source."""
