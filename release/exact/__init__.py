"""Exact objects: numbers, answer domains, noise distributions, guarantees, and exact draws."""
