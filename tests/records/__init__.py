"""Tests of the room release/records."""
