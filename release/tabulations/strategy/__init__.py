"""Strategies for tables that add up: which table is measured, with how much noise."""
