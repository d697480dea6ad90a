"""The confidential tables: finding their files and loading them into DuckDB."""
