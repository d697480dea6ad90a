"""The files of tabulations: the numbers that are published, and how they are written and read."""
