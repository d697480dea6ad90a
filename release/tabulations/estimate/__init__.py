"""Tables that add up: the public structure of a hierarchy of areas, and exact arithmetic on it."""
