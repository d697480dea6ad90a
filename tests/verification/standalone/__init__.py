"""Tests of the verifier in one file, piece by piece."""
