"""The rehearsal of a run against the tables: what it would do, shown to the curator alone."""
