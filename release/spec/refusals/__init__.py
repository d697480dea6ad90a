"""What a spec or a contract of another shape, or an unfinished one, is told, in our own words."""
