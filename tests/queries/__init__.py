"""Tests of the room release/queries."""
