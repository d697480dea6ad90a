"""The public bundle and the auditor's folder: what stands in them, and publishing them whole."""
