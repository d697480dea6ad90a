"""Tests of the room release/verification."""
