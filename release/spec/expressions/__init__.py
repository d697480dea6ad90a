"""Conditions and derived columns as typed trees: parsed, checked, and written as SQL.

A tree uses the columns of its own row, constants, and functions that depend on their arguments
alone. So a row's part in an answer depends on that row alone, which the sensitivity of a query is
derived from. No row can make a tree fail: what has no value is missing.
"""

from release.spec.expressions.sql import identifier, literal

__all__ = ["identifier", "literal"]
