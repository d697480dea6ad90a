"""The report for people: one self-contained HTML file, from public records only.

It sees released answers and, for worst-case queries, their laws; nothing else is passed in. The
same inputs give the same bytes, pictures included.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import resources

from release.answers import Topology
from release.log import LawRecord, QueryRecord, ReleaseRecord
from release.spec import Levels, Query, answer_domain

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
    def labels(self) -> tuple[str, ...]:
        """The released answers as a reader reads them."""
        labels = answer_domain(self.query.domain).labels
        if isinstance(self.query.domain, Levels):
            ends = [*(int(label) for label in labels[1:]), self.query.domain.levels.high]
            texts = [f"{low} to {high}" for low, high in zip(labels, ends, strict=True)]
            return tuple(texts[code] for code in self.codes)
        return tuple(str(labels[code]) for code in self.codes)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Keys and answer, row by row."""
        pairs = zip(self.keys, self.labels, strict=True)
        return tuple((*key, label) for key, label in pairs)


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
            "rows": public.rows[:MAX_ROWS],
            "left_out": max(0, len(public.rows) - MAX_ROWS),
            "picture": answers_svg(public),
        }
        for public in queries
    ]
    return environment.from_string(template).render(release=record, queries=shown)


def answers_svg(public: PublicQuery) -> str | None:
    """A picture of the released answers by key; None where a picture would not help."""
    domain = answer_domain(public.query.domain)
    if len(public.record.by) != 1 or not 2 <= len(public.keys) <= 60:
        return None
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
