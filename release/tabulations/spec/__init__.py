"""What a spec declares of tabulations: areas, attributes, margins, numbers that are kept."""
