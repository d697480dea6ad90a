"""The tables of a published release as pandas frames, with intervals where the noise is public.

Reading checks the SHA-256 of the tables alone; :func:`release.verification.verifier.verify` checks
whether the files are genuine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release.analysis.estimation import Estimates, estimate_release
from release.analysis.tables import list_tables, no_such_query, table_frame
from release.bundle.read import read_record
from release.errors import DesignError, SpecError, VerificationError
from release.noise.shown import facts_html
from release.records.hashes import sha256
from release.records.models import QueryRecord, ReleaseRecord

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LEVEL = 0.95
"""The credible level of the intervals, under a uniform prior over the true answers."""


@dataclass(frozen=True)
class Table:
    """The published table of one query."""

    public: Path
    release_id: str
    record: QueryRecord

    def to_arrow(self) -> pa.Table:
        """The published table.

        Raises:
            VerificationError: the file does not have the SHA-256 in ``release.json``.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = self.record.output.path
        try:
            data = (self.public / file).read_bytes()
            if sha256(data) != self.record.output.sha256:
                raise VerificationError(file, "SHA-256", sha256(data), self.record.output.sha256)
            return pq.read_table(self.public / file)
        except (OSError, pa.ArrowException) as error:
            raise VerificationError(file, "format", "nothing readable", "a Parquet file") from error

    def estimates(self) -> Estimates | None:
        """The estimates of the true answers; None where the noise is not public.

        Joint answers, and domains that are too large for an estimate, have none either.
        """
        try:
            return estimate_release(self.public, self.record.name, level=LEVEL)
        except (SpecError, DesignError):
            return None

    def _repr_html_(self) -> str:
        """What a notebook shows: the frame of :meth:`to_pandas`, under its title and unit."""
        frame = self.to_pandas()
        names = ("title", "unit", "scale", "interval")
        facts = {}
        for name in names:
            if name in frame.attrs:
                facts[name] = frame.attrs[name]
        # Ten rows: a notebook would show thousands, and be saved with them.
        table: str = frame.to_html(max_rows=10)
        return facts_html(self.record.name, facts) + table

    def to_pandas(self) -> pd.DataFrame:
        """A row for each cell: keys and answer, and an interval where the noise is public.

        ``low`` and ``high`` bound the credible interval, both included, in the answer's labels.
        ``standard_error`` is that of the unbiased estimate, and missing where none exists.
        ``attrs`` has the query, its title and unit, and the meaning of the interval.
        """
        table = self.to_arrow()
        # The code says no more than the label; noisy sums say more than the mean, and stay.
        codes = [name for name in table.schema.names if name == "answer_code"]
        frame: pd.DataFrame = table.drop_columns(codes).to_pandas()
        # The columns of the keys come first, so the first answer is the one after them.
        answer = table.schema.field(len(self.record.by))
        frame.attrs = {
            "release": self.release_id,
            "query": self.record.name,
            "kind": self.record.kind,
            "by": list(self.record.by),
            **_facts(answer.metadata or {}),
        }
        estimates = self.estimates()
        # Those of a histogram are by category, and not by row.
        if estimates is None or len(estimates.by) > len(self.record.by):
            return frame
        lows = estimates.column("low")
        if lows.count(None) < len(lows):
            frame["low"] = lows
            frame["high"] = estimates.column("high")
            # None for every cell would make a column of objects, not of missing numbers.
            frame["standard_error"] = estimates.column("standard_error")
            frame["standard_error"] = frame["standard_error"].astype("float64")
        return frame

    def histogram(self) -> pd.DataFrame:
        """A row for each cell and category: the noisy count of a ``top``, and its interval.

        The columns are those of the keys, the column of the category, and ``noisy_count``, ``low``,
        ``high`` and ``standard_error``. A noisy count may be negative: add it up as it is.

        Raises:
            SpecError: the query is no top whose histogram is published.
        """
        import pandas as pd

        estimates = self.estimates()
        if estimates is None or len(estimates.by) == len(self.record.by):
            raise SpecError(
                "query", f"{self.record.name!r} has no histogram; a top with histogram: true has"
            )
        frame = pd.DataFrame(list(estimates.keys), columns=list(estimates.by))
        frame["noisy_count"] = estimates.column("published")
        for name in ("low", "high", "standard_error"):
            frame[name] = estimates.column(name)
        frame.attrs = {
            "release": self.release_id,
            "query": self.record.name,
            "kind": self.record.kind,
            "by": list(estimates.by),
            "interval": f"{LEVEL:.0%} confidence",
        }
        return frame


def _facts(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    facts = {}
    for name in ("title", "unit", "scale", "interval"):
        if name.encode() in metadata:
            facts[name] = metadata[name.encode()].decode()
    return facts


class _UnknownQueryError(SpecError, KeyError):
    """A query that is not published; a KeyError, because ``in`` and ``get`` rely on one."""

    # A KeyError shows its message in quotes; a SpecError does not.
    __str__ = Exception.__str__


@dataclass(frozen=True)
class Opened(Mapping[str, Table]):
    """The published tables of a release by the names of their queries, in the order of the spec.

    The tables of tabulations have no names: :meth:`tables` lists them and :meth:`table` opens one.
    """

    public: Path
    record: ReleaseRecord

    def __getitem__(self, query: str) -> Table:
        for record in self.record.queries:
            if record.name == query:
                return Table(self.public, self.record.release_id, record)
        raise _UnknownQueryError("query", no_such_query(query, self.record))

    def __iter__(self) -> Iterator[str]:
        for record in self.record.queries:
            yield record.name

    def __len__(self) -> int:
        return len(self.record.queries)

    def __bool__(self) -> bool:
        """True: a release of tabulations alone has no query, but is not empty."""
        return True

    def __repr__(self) -> str:
        """What is published, by name."""
        named = [f"queries {', '.join(self)}"] if len(self) else []
        tabulations = [tabulation.name for tabulation in self.record.tabulations or ()]
        if tabulations:
            named.append(f"tabulations {', '.join(tabulations)}")
        return f"<release {self.record.release_id}: {'; '.join(named)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the title, and what is published, by name."""
        facts: dict[str, str] = {}
        for query in self.record.queries:
            facts[query.name] = f"{query.kind}, {query.cells} cells"
        for tabulation in self.record.tabulations or ():
            levels = [entry.level for entry in tabulation.levels]
            facts[tabulation.name] = f"tabulation, levels {', '.join(levels)}"
        return facts_html(f"{self.record.release_id}: {self.record.title}", facts)

    def tables(self) -> pd.DataFrame:
        """The published tables of tabulations: level, margin, size and mean standard error.

        Raises:
            VerificationError: a file does not have the SHA-256 in ``release.json``.
        """
        return list_tables(self.public, self.record)

    def table(
        self, level: str, margin: Sequence[str] = (), *, tabulation: str | None = None
    ) -> pd.DataFrame:
        """A table of a tabulation: a row for each area of ``level`` and category of ``margin``.

        ``answer`` is unbiased and may be negative: add it up, or average it. ``rounded`` is whole,
        not negative, and adds up exactly. ``low`` and ``high`` bound the true count, both included,
        in 95 of 100 cases for each cell by itself.

        Args:
            level: the level of the areas, such as ``"county"``.
            margin: attributes and groupings in any order; none for the totals.
            tabulation: its name, where the release has several.

        Raises:
            SpecError: no such tabulation, level or margin; the message names those there are.
            VerificationError: the file does not have the SHA-256 in ``release.json``.
        """
        return table_frame(self.public, self.record, level, margin, tabulation)


def open_release(public: Path) -> Opened:
    """The tables of the release in ``public``.

    Raises:
        VerificationError: the folder holds no release record.
    """
    return Opened(public, read_record(ReleaseRecord, "release.json", public / "release.json"))
