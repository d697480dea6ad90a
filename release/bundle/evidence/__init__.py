"""What the log and the auditor bundle say of a run: when, by whom, from what, and who signed it."""
