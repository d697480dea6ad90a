"""Mechanisms of the papers that no spec can name, one file a paper."""
