"""Tests of the account of a scope under each of its rules."""
