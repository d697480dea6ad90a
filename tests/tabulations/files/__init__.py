"""Tests of the files of tabulations."""
