"""Scheduled releases: delivery, the journal, and examining an output folder."""
