"""The log of runs: its lines, its file, and what is exported from it."""
