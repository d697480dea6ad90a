"""Tests of the room release/research."""
