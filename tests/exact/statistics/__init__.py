"""Tests of the mechanisms on statistics."""
