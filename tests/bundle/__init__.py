"""Tests of the room release/bundle."""
