"""Noise on the integers, and the mechanism that adds, clamps and remaps it."""
