"""Which rows of a unit a bound keeps: a sample that is fixed by the rows themselves.

Kept are the rows with the least SHA-256 of a text: the id of the release, the unit, and the values
of all declared columns by name, each with its length before it, and the number of the row among
the equal rows of the unit. So a sample is the same in every engine and run, no order of columns or
rows prefers one, and every release draws anew. It is a function of the unit's own rows, which is
all that a guarantee for any table needs (docs/design/mathematics.md, 2.36). Nothing in it is
secret.

An empirical sensitivity measures copies of units, under other names and in other fixed parts. Of a
copy the same rows have to be kept, so for such a query the text names neither.
"""

from __future__ import annotations

from collections.abc import Iterable

from release.spec.expressions import identifier, literal
from release.spec.load import SpecFile


def row_text(spec_file: SpecFile, table: str, *, is_empirical: bool = False) -> str:
    """The SQL of the text of a row of ``table``, as the rows of a statement ``rows``."""
    spec = spec_file.spec
    declared, join = dict(spec.tables[table].columns), spec.tables[table].join
    if join is not None:
        # What is derived follows from the rest, so that rows that differ there differ here.
        declared |= spec.tables[join.table].columns
    return text_of(spec_file, declared, is_empirical=is_empirical)


def text_of(spec_file: SpecFile, columns: Iterable[str], *, is_empirical: bool = False) -> str:
    """The SQL of the text of some columns of a row: no two lists of values have the same."""
    spec = spec_file.spec
    unit, names = spec.privacy.unit, sorted(columns)
    if is_empirical:
        own = {unit, *spec.privacy.fixed}
        names = [name for name in names if name not in own]
    else:
        names = [unit, *names]
    parts = [literal(f"{spec.release.id}|")]
    for name in names:
        value = f"CAST(rows.{identifier(name)} AS VARCHAR)"
        # ``||`` of a NULL is NULL, where concat() would leave it out.
        parts.append(f"coalesce(length({value}) || ':' || {value}, '-')")
    return f"concat({', '.join(parts)})"


def sample_of(eligible: str, most: int) -> str:
    """The SQL of rows with a ``#unit`` and a ``#text``, of each unit ``most`` at most.

    Cost: a sort of the rows by unit and text.
    """
    # Without the number equal rows would stand or fall together.
    number = 'row_number() OVER (PARTITION BY "#unit", "#text")'
    ranked = f'(SELECT *, sha256(concat("#text", \'#\', {number})) AS "#rank" FROM {eligible})'
    return (
        f"(SELECT * FROM {ranked} QUALIFY row_number() "
        f'OVER (PARTITION BY "#unit" ORDER BY "#rank") <= {most})'
    )
