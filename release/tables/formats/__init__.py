"""One file for each format of a confidential table, behind one interface: find, schema, read."""
