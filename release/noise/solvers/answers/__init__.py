"""A distribution for each answer: the program of a channel, its relaxation and its integers."""
