"""Tests of the room release/noise."""
