"""Tests of the noise for queries that share one budget."""
