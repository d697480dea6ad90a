"""Noise for queries that share one budget: the more there are, the closer to a Gaussian."""
