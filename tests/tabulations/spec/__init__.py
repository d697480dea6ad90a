"""Tests of what a spec declares of tabulations, and of what is refused."""
