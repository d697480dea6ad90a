"""Tests of release.exact.tables."""
