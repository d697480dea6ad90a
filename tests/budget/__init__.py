"""Tests of the room release/budget."""
