"""The documentation: what it shows is run, and where it links is there."""
