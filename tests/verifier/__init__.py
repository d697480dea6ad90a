"""Tests of the verifier that is a package of its own."""
