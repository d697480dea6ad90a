"""Tests of the room release/exact/tables."""
