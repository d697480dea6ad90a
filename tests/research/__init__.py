"""Tests of the room research."""
