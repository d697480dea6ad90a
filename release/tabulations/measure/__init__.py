"""What tabulations measure: counts of units by area and category."""
