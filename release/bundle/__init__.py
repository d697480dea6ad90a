"""The public bundle and the auditor bundle: what stands in them, and publishing them whole."""
