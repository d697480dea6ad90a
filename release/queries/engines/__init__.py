"""What reads the tables for a query: DuckDB on one machine, or Spark."""
