"""Tests of the room release/analysis."""
