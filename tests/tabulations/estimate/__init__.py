"""Tests of the room release/tabulations/estimate."""
