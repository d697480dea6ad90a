"""Tests of the room release/tables."""
