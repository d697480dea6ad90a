"""Which rows of a unit an answer is about, and whether its cells add up, in words for readers."""

from __future__ import annotations

from release.bundle.report.questions import unit_word
from release.queries.registry import rows_read
from release.spec.model import Spec
from release.spec.query import Query


def bounded_words(spec: Spec, query: Query) -> str:
    """Of which rows an answer is: "of a plane at most 10 flights were read"; empty of all rows.

    A bound of one row a unit says so too: whether a table has more of them is not public.
    """
    if query.runs_again or query.for_units:
        return ""
    unit, rows = unit_word(spec.privacy.unit), rows_read(spec, query)
    words = f"at most {rows:,} {'row' if rows == 1 else 'rows'} read of each {unit}"
    cells = spec.privacy.max_cells_per_unit
    if cells is not None and query.by:
        words += f", in at most {cells:,} {'cell' if cells == 1 else 'cells'}"
    return words


def shared_words(spec: Spec, query: Query) -> str:
    """That one unit is counted in several cells, so that these do not add up; empty where not."""
    if not query.counts_again(spec.privacy) or rows_read(spec, query) == 1:
        return ""
    unit = unit_word(spec.privacy.unit)
    return f"one {unit} may be counted in several cells, so a sum of them counts it more than once"
