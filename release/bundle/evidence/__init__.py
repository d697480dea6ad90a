"""What the log and the auditor's folder say of a run: when, by whom, from what, who signed it."""
