"""Tests of release/tabulations/strategy."""
