"""What a spec or a contract of another shape is told: a line for each fault, in our own words."""
