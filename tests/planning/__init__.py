"""Tests of the room release/planning."""
