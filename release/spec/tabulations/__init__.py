"""Tabulations: tables that add up over areas and attributes, published from one budget."""
