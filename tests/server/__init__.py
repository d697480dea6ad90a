"""Tests that need a Prefect server."""
