"""Tests of the room release/operate."""
