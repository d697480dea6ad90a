"""Tests of what is said of a run: by whom, when, from what."""
