"""The published table of one query as a frame, with intervals where the noise is public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dp_release_verify import forms
from release.analysis.estimation import Estimates, Floats, estimates_of, zero_chances
from release.bundle.opened import PublicRelease
from release.bundle.tables.parquet import stated_facts
from release.errors import DesignError, SpecError
from release.noise.shown import facts_html
from release.queries.zeros import FEWEST_CELLS
from release.spec.query import Query

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


LEVEL = 0.95
"""The level of the intervals, at every true answer."""


@dataclass(frozen=True)
class Table:
    """The published table of one query."""

    release: PublicRelease
    made: forms.MadeQuery

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.made.name

    @property
    def query(self) -> Query:
        """The query as it was asked."""
        return self.release.query(self.name)

    def to_arrow(self) -> pa.Table:
        """The published table.

        Raises:
            VerificationError: the file does not have the SHA-256 in SHA256SUMS.
        """
        return self.release.table(self.name)

    def estimates(self) -> Estimates | None:
        """The estimates of the true answers; None where the noise is not public.

        Joint answers, and domains that are too large for an estimate, have none either.
        """
        try:
            return estimates_of(self.release, self.name, LEVEL)
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
        return facts_html(self.name, facts) + table

    def to_pandas(self, *, chance_of_zero: bool = False) -> pd.DataFrame:
        """A row for each cell: keys and answer, and an interval where the noise is public.

        ``low`` and ``high`` bound the interval, both included, in the answer's labels; of a sum or
        mean they are numbers of it, ``noisy_sum`` lies within, and ``estimate`` is the mean that
        the noisy sums make. ``standard_error`` is that of the unbiased estimate, and missing where
        none exists.
        ``attrs`` has the query, its title and unit, and the meaning of the interval.

        Args:
            chance_of_zero: adds a column of that name: the chance that the true answer is 0, if the
                true answers are distributed as all published ones say
                (:mod:`release.queries.zeros`).

        Raises:
            SpecError: such chances are asked of fewer than 5,000 cells, of answers that do not
                begin at 0, or where the noise is not on the answer, or not public, or too wide.
            VerificationError: a file does not have the SHA-256 in SHA256SUMS.
        """
        table = self.to_arrow()
        # The code says no more than the label; noisy sums say more than the mean, and stay.
        if "answer_code" in table.schema.names:
            table = table.drop_columns("answer_code")
        frame: pd.DataFrame = table.to_pandas()
        # The columns of the keys come first, so the first answer is the one after them.
        by = self.query.by
        answer = table.schema.field(len(by)).name
        frame.attrs = self._attributes(by) | stated_facts(table.schema, answer)
        if chance_of_zero:
            frame["chance_of_zero"] = self._chances_of_zero()
        estimates = self.estimates()
        # Those of a histogram are by category, and not by row.
        if estimates is None or len(estimates.by) > len(by):
            return frame
        if "low" in frame:
            values = estimates.column("value")
            if self.query.kind == "mean" and values.count(None) < len(values):
                frame["estimate"] = values
            # None for every cell would make a column of objects, not of missing numbers.
            frame["standard_error"] = estimates.column("standard_error")
            frame["standard_error"] = frame["standard_error"].astype("float64")
        return frame

    def _chances_of_zero(self) -> Floats:
        found = zero_chances(self.release, self.made)
        if found is None:
            raise SpecError(
                "chance_of_zero",
                f"nothing is known of {self.name!r}: it takes {FEWEST_CELLS:,} cells whose "
                "answers begin at 0, and public noise on them; leave it out",
            )
        return found

    def histogram(self) -> pd.DataFrame:
        """A row for each cell and category: the noisy count of a ``top``, and its interval.

        The columns are those of the keys, the column of the category, and ``noisy_count``, ``low``,
        ``high`` and ``standard_error``. A noisy count may be negative: add it up as it is.

        Raises:
            SpecError: the query is no top whose histogram is published.
        """
        import pandas as pd

        estimates = self.estimates()
        if estimates is None or len(estimates.by) == len(self.query.by):
            raise SpecError(
                "query", f"{self.name!r} has no histogram; a top with histogram: true has"
            )
        frame = pd.DataFrame(list(estimates.keys), columns=list(estimates.by))
        frame["noisy_count"] = estimates.column("published")
        for name in ("low", "high", "standard_error"):
            frame[name] = estimates.column(name)
        frame.attrs = self._attributes(estimates.by) | {"interval": f"{LEVEL:.0%} confidence"}
        return frame

    def _attributes(self, by: Sequence[str]) -> dict[Any, Any]:
        """What a frame says of itself; ``by`` are the columns of its keys."""
        return {
            "release": self.release.name,
            "query": self.name,
            "kind": self.query.kind,
            "by": list(by),
        }
