"""The report for people: one self-contained HTML file, from public records only.

It sees released answers and, for worst-case queries, their laws; nothing else is passed in. The
same inputs give the same bytes, pictures included.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from release.answers import Topology
from release.domains import Levels, plain_answers
from release.exact import format_exact
from release.ledger import Spending
from release.log import ChannelRecord, LawRecord, QueryRecord, ReleaseRecord
from release.spec import (
    Part,
    Query,
    RealQuery,
    SqlQuery,
    TupleQuery,
    answer_columns,
    answer_domain,
    plain_parts,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_ROWS = 200
"""Longer tables are cut in the report; the Parquet file has them whole."""


@dataclass(frozen=True)
class PublicQuery:
    """What everyone may see of one query. ``law`` is None where it depends on the data."""

    query: Query
    record: QueryRecord
    keys: tuple[tuple[str, ...], ...]
    codes: tuple[int, ...]
    law: LawRecord | ChannelRecord | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the keys and of the answer, or of each part of it."""
        return (*self.record.by, *answer_columns(self.query))

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Keys and answer as a reader reads them, row by row."""
        group = answer_domain(self.query).group
        coordinates = group.coordinates(np.array(self.codes, dtype=np.int64))
        labels = [
            [_labels(one)[code] for code in codes.tolist()]
            for one, codes in zip(plain_parts(self.query), coordinates, strict=True)
        ]
        return tuple((*key, *answer) for key, *answer in zip(self.keys, *labels, strict=True))


def _labels(query: Part | SqlQuery) -> tuple[str, ...]:
    """The answers of a domain; levels as from the least integer to the end."""
    labels = plain_answers(query.domain).labels
    if isinstance(query, RealQuery):
        return tuple(f"{label} × {format_exact(query.domain.grid.scale)}" for label in labels)
    if isinstance(query.domain, Levels):
        ends = [*(int(label) for label in labels[1:]), query.domain.levels.high]
        return tuple(f"{low} to {high}" for low, high in zip(labels, ends, strict=True))
    return tuple(map(str, labels))


def report_html(
    record: ReleaseRecord, queries: tuple[PublicQuery, ...], spent: Spending | None = None
) -> str:
    """The report as HTML; with what the scope has ``spent`` where there is a ledger."""
    import jinja2

    template = resources.files("release.report").joinpath("report.html").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    shown = [
        {
            "name": public.record.name,
            "record": public.record,
            "law": public.law,
            "by": public.record.by,
            "columns": public.columns,
            "rows": public.rows[:MAX_ROWS],
            "left_out": max(0, len(public.rows) - MAX_ROWS),
            "picture": answers_svg(public),
        }
        for public in queries
    ]
    budget = (
        None
        if spent is None
        else {
            "spent": format_exact(spent.epsilon[-1]),
            "cap": format_exact(spent.cap),
            "charges": len(spent.days),
            "picture": budget_svg(spent),
        }
    )
    return environment.from_string(template).render(release=record, queries=shown, budget=budget)


def budget_svg(spent: Spending) -> str:
    """A picture of what a scope has spent over time, and of its cap."""
    days = [np.datetime64(day) for day in spent.days]
    with _figure(2.4) as (figure, axes, sink):
        # From the day before the first charge, so that a first step is there to be seen.
        x = [days[0] - 1, *days, days[-1] + 1]
        y = [0.0, *map(float, spent.epsilon), float(spent.epsilon[-1])]
        axes.step(x, y, where="post", color="#2b5d8a", linewidth=2)
        axes.fill_between(x, y, step="post", color="#2b5d8a", alpha=0.15)
        axes.axhline(float(spent.cap), color="#a33", linestyle="--")
        axes.annotate("cap", (x[0], float(spent.cap)), (2, -12), textcoords="offset points")
        axes.set_ylim(0, 1.08 * max(float(spent.cap), y[-1]) or 1.0)
        ends = {spent.days[0]: days[0], spent.days[-1]: days[-1]}
        axes.set_xticks([*ends.values()], [*ends])
        axes.set_ylabel("ε spent")
        _save(figure, sink)
    return _inside_html(sink)


def answers_svg(public: PublicQuery) -> str | None:
    """A picture of the released answers by key; None where a picture would not help."""
    if len(public.record.by) != 1 or not 2 <= len(public.keys) <= 60:
        return None
    if isinstance(public.query, TupleQuery):
        return None
    domain = plain_answers(public.query.domain)
    places = range(len(public.keys))
    with _figure(2.8) as (figure, axes, sink):
        if domain.topology is Topology.ORDERED:
            values = [float(domain.labels[code]) for code in public.codes]
            axes.bar(places, values, color="#2b5d8a")
        else:
            axes.plot(places, public.codes, "o", color="#2b5d8a")
            axes.set_ylim(-0.5, domain.size - 0.5)
            if domain.topology is Topology.NOMINAL:
                axes.set_yticks(
                    range(domain.size), [str(label) for label in domain.labels], parse_math=False
                )
        axes.set_xticks(places, [key[0] for key in public.keys], parse_math=False)
        axes.set_xlabel(public.record.by[0], parse_math=False)
        axes.set_ylabel("published answer")
        _save(figure, sink)
    return _inside_html(sink)


@contextmanager
def _figure(height: float) -> Iterator[tuple[Figure, Axes, io.StringIO]]:
    """An empty picture whose bytes depend on what is drawn alone."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "dp-release", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(8, height), layout="constrained")
        axes = figure.subplots()
        axes.grid(axis="y", color="#dddddd")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        yield figure, axes, io.StringIO()


def _save(figure: Figure, sink: io.StringIO) -> None:
    with warnings.catch_warnings():
        # The file holds text, not glyphs; that a font here lacks some of them does not matter.
        warnings.simplefilter("ignore")
        figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})


def _inside_html(sink: io.StringIO) -> str:
    """Without the XML declaration and the document type, which have no place there."""
    return sink.getvalue().partition("<svg")[1] + sink.getvalue().partition("<svg")[2]
