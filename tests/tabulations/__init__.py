"""Tests of tabulations; a folder for each of release/tabulations."""
