"""The verifier: checks a release from its files alone."""
