"""Noise on the integers and its mechanism: weights, tails, draws, outcomes and profiles."""
