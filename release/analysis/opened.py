"""The tables of a published release as pandas frames, with intervals where the noise is public.

Reading checks the SHA-256 of the files alone; :func:`release.verification.verifier.verify` checks
whether they are genuine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from release.analysis.query_table import Table
from release.bundle.about import release_title
from release.bundle.opened import PublicRelease, open_public
from release.errors import SpecError
from release.noise.shown import facts_html
from release.spec.named import names_of
from release.tabulations.frames import list_tables, no_such_query, table_frame

if TYPE_CHECKING:
    import pandas as pd


class _UnknownQueryError(SpecError, KeyError):
    """A query that is not published; a KeyError, because ``in`` and ``get`` rely on one."""

    # A KeyError shows its message in quotes; a SpecError does not.
    __str__ = Exception.__str__


@dataclass(frozen=True)
class Opened(Mapping[str, Table]):
    """The published tables of a release by the names of their queries, in the order of the spec.

    The tables of tabulations have no names: :meth:`tables` lists them and :meth:`table` opens one.
    """

    release: PublicRelease

    def __getitem__(self, query: str) -> Table:
        for made in self.release.made.queries:
            if made.name == query:
                return Table(self.release, made)
        raise _UnknownQueryError("query", no_such_query(query, self.release))

    def __iter__(self) -> Iterator[str]:
        for made in self.release.made.queries:
            yield made.name

    def __len__(self) -> int:
        return len(self.release.made.queries)

    def __bool__(self) -> bool:
        """True: a release of tabulations alone has no query, but is not empty."""
        return True

    def __repr__(self) -> str:
        """What is published, by name."""
        named = [f"queries {', '.join(self)}"] if len(self) else []
        tabulations = names_of(self.release.tabulations)
        if tabulations:
            named.append(f"tabulations {', '.join(tabulations)}")
        return f"<release {self.release.name}: {'; '.join(named)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the title, and what is published, by name."""
        facts: dict[str, str] = {}
        for made in self.release.made.queries:
            kind = self.release.query(made.name).kind
            facts[made.name] = f"{kind}, {made.cells} cells"
        for tabulation in self.release.tabulations:
            levels = ", ".join(level.level for level in tabulation.levels)
            facts[tabulation.name] = f"tabulation, levels {levels}"
        title = release_title(self.release.record.asked.release)
        return facts_html(f"{self.release.name}: {title}", facts)

    def tables(self) -> pd.DataFrame:
        """The published tables of tabulations: level, margin, size and mean standard error.

        Raises:
            VerificationError: a file does not have the SHA-256 in SHA256SUMS.
        """
        return list_tables(self.release)

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
            VerificationError: the file does not have the SHA-256 in SHA256SUMS.
        """
        return table_frame(self.release, level, margin, tabulation)


def open_release(public: Path) -> Opened:
    """The tables of the release in ``public``.

    Raises:
        VerificationError: the folder holds no release record.
    """
    return Opened(open_public(public))
