"""The statement of tabulations: areas, attributes, and what is refused."""
