"""Tests that start and kill processes, or look at every byte that a run writes."""
