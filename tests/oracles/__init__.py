"""Second programs that were written from a page alone, and share no code with what they check."""
