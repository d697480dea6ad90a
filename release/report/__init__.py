"""The report for people: one self-contained HTML file, from public records only.

It sees released answers and, for worst-case queries, their laws; nothing else is passed in. The
same inputs give the same bytes, pictures included.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import resources

import numpy as np

from release.answers import Topology
from release.log import LawRecord, QueryRecord, ReleaseRecord
from release.spec import (
    Levels,
    Part,
    Query,
    SqlQuery,
    TupleQuery,
    answer_columns,
    answer_domain,
    plain_answers,
)

MAX_ROWS = 200
"""Longer tables are cut in the report; the Parquet file has them whole."""


@dataclass(frozen=True)
class PublicQuery:
    """What everyone may see of one query. ``law`` is None where it depends on the data."""

    query: Query
    record: QueryRecord
    keys: tuple[tuple[str, ...], ...]
    codes: tuple[int, ...]
    law: LawRecord | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the keys and of the answer, or of each part of it."""
        return (*self.record.by, *answer_columns(self.query))

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Keys and answer as a reader reads them, row by row."""
        group = answer_domain(self.query).group
        coordinates = group.coordinates(np.array(self.codes, dtype=np.int64))
        plain = self.query.parts if isinstance(self.query, TupleQuery) else (self.query,)
        labels = [
            [_labels(one)[code] for code in codes.tolist()]
            for one, codes in zip(plain, coordinates, strict=True)
        ]
        return tuple((*key, *answer) for key, *answer in zip(self.keys, *labels, strict=True))


def _labels(query: Part | SqlQuery) -> tuple[str, ...]:
    """The answers of a domain; levels as from the least integer to the end."""
    labels = plain_answers(query.domain).labels
    if isinstance(query.domain, Levels):
        ends = [*(int(label) for label in labels[1:]), query.domain.levels.high]
        return tuple(f"{low} to {high}" for low, high in zip(labels, ends, strict=True))
    return tuple(map(str, labels))


def report_html(record: ReleaseRecord, queries: tuple[PublicQuery, ...]) -> str:
    """The report as HTML."""
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
    return environment.from_string(template).render(release=record, queries=shown)


def answers_svg(public: PublicQuery) -> str | None:
    """A picture of the released answers by key; None where a picture would not help."""
    if len(public.record.by) != 1 or not 2 <= len(public.keys) <= 60:
        return None
    if isinstance(public.query, TupleQuery):
        return None
    domain = plain_answers(public.query.domain)
    import io

    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "dp-release", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(8, 2.8), layout="constrained")
        axes = figure.subplots()
        places = range(len(public.keys))
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
        axes.grid(axis="y", color="#dddddd")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        sink = io.StringIO()
        with warnings.catch_warnings():
            # The file holds text, not glyphs; that a font here lacks some of them does not matter.
            warnings.simplefilter("ignore")
            figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    # Inside HTML the XML declaration and the document type have no place.
    return sink.getvalue().partition("<svg")[1] + sink.getvalue().partition("<svg")[2]
