"""Tests of tabulations' counts and tables."""
