"""Tests of the room release/cli."""
