"""The audit: the whole program, run on tiny tables and held against the guarantee of its spec."""
