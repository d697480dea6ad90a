"""Tests that need a Spark cluster."""
