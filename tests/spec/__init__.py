"""Tests of the room release/spec."""
