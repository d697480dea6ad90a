"""Tests of exact composition."""
