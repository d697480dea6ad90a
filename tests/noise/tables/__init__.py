"""Tests of release/noise/tables."""
