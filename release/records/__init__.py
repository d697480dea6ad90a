"""The files of a release and of a ledger as typed records: parsing, canonical bytes, signatures."""
