"""The methods that solve for a noise distribution, each in one file."""
