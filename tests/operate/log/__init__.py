"""Tests of the log of runs."""
