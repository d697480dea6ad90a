"""A spec from Python: a data set, a release of it, and its questions, one call each.

Everything here writes the YAML that a person would write, and hands it to the verbs of the package;
nothing can be said here that a spec could not say.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import yaml

from release.errors import SpecError, StorageError, unknown_name
from release.exact.numbers import exact, format_exact

if TYPE_CHECKING:
    from release.job import Published
    from release.operate.rehearsal.text import Rehearsal
    from release.planning.plan import Plan

T = TypeVar("T")
Number: TypeAlias = int | str | Fraction

_FORMAT = "dp-release/spec/v1"


@dataclass(frozen=True)
class Verbs:
    """The verbs of the package that a draft is handed to."""

    run: Callable[..., Published]
    plan: Callable[..., Plan]
    check: Callable[..., Rehearsal]


@dataclass(frozen=True, repr=False)
class Dataset:
    """A confidential frame, with whom the guarantee protects and which keys are public.

    Attributes:
        frame: a pandas or Polars frame, or an Arrow table.
        columns: its columns with their types, as a spec declares them.
        privacy: as in a spec.
        keys: the public keys of each key column.
        name: the name of the table in the spec.
        verbs: what a draft is handed to.
    """

    frame: Any
    columns: Mapping[str, str]
    privacy: Mapping[str, Any]
    keys: Mapping[str, Any]
    name: str
    verbs: Verbs

    def __repr__(self) -> str:
        """The names alone: the frame is confidential."""
        return f"<dataset {self.name}: {', '.join(self.columns)}>"

    def release(
        self,
        release_id: str,
        *,
        epsilon: Number,
        delta: Number = 0,
        scope: str | None = None,
        **texts: str,
    ) -> Draft:
        """Begin a release with this budget.

        ``scope`` is the account of the ledger that pays, by default of the name of the table.
        ``texts`` are the title, curator, contact, purpose, period and license, as far as they are
        to be said.

        Raises:
            SpecError: ε or δ is no exact number.
        """
        budget = {
            "scope": scope or self.name.replace("_", "-"),
            "epsilon": format_exact(exact("epsilon", epsilon)),
            "delta": format_exact(exact("delta", delta)),
        }
        return Draft(self, {"id": release_id, **texts}, budget)


@dataclass(repr=False)
class Draft:
    """A release that is being written; each question returns the draft."""

    dataset: Dataset
    about: Mapping[str, str]
    budget: Mapping[str, str]
    queries: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        """The spec as far as it is written: it is public."""
        return self.text

    def query(
        self,
        name: str,
        kind: str,
        *,
        by: Sequence[str] = (),
        epsilon: Number | None = None,
        **fields: Any,
    ) -> Self:
        """Ask a question of any kind; ``fields`` are those of the kind in a spec.

        Without ``epsilon``, a ``guarantee``, a ``share`` or a ``target`` the questions share the
        budget evenly.

        Raises:
            SpecError: ε is no exact number.
        """
        at = f"queries[{len(self.queries)}]"
        asked: dict[str, Any] = {"name": name, "kind": kind, "by": plain(f"{at}.by", by)}
        for field_name, value in fields.items():
            asked[field_name] = plain(f"{at}.{field_name}", value)
        if epsilon is not None:
            asked["guarantee"] = {"epsilon": format_exact(exact("epsilon", epsilon))}
        elif not {"guarantee", "share", "target"} & asked.keys():
            asked["share"] = "1"
        self.queries.append(asked)
        return self

    def count(self, name: str, *, of: str | None = None, **fields: Any) -> Self:
        """Count rows, or with ``of`` the units: it names their column."""
        return self.query(name, "count", **_given(of=of), **fields)

    def mode(self, name: str, *, of: str, categories: Sequence[str], **fields: Any) -> Self:
        """Ask for the commonest of the ``categories``."""
        return self.query(name, "mode", of=of, **_with(fields, domain={"nominal": categories}))

    def top(self, name: str, *, of: str, k: int, categories: Sequence[str], **fields: Any) -> Self:
        """Ask for the ``k`` commonest of the ``categories``, in their order."""
        own = _with(fields, domain={"nominal": categories})
        return self.query(name, "top", of=of, k=k, **own)

    def sum(self, name: str, *, of: str, clamp: tuple[int, int], **fields: Any) -> Self:
        """Add up a column, of which each row counts within ``clamp``; ``bins`` are the answers."""
        return self.query(name, "sum", of=of, clamp=_ends("clamp", clamp), **fields)

    def mean(
        self,
        name: str,
        *,
        of: str,
        clamp: tuple[int, int],
        bins: int | Mapping[str, int] | None = None,
        **fields: Any,
    ) -> Self:
        """Ask for the mean of a column, of which each row counts within ``clamp``.

        The answers are so many ``bins``, by default a thousand or those of whole numbers; ``bins``
        as a spec has them; or a ``grid``, for a column of numbers.
        """
        return self._in_bins(name, "mean", of, clamp, bins, fields)

    def median(
        self,
        name: str,
        *,
        of: str,
        clamp: tuple[int, int],
        bins: int | Mapping[str, int] | None = None,
        **fields: Any,
    ) -> Self:
        """Ask for the median of a column; the arguments are those of a mean."""
        return self._in_bins(name, "median", of, clamp, bins, fields)

    def _in_bins(
        self, name: str, kind: str, of: str, clamp: object, bins: object, fields: Mapping[str, Any]
    ) -> Self:
        low, high = _ends("clamp", clamp)
        own: dict[str, Any] = {"of": of, "clamp": [low, high]}
        if "grid" not in fields:
            count = min(1000, high - low) if bins is None else bins
            is_whole = isinstance(bins, Mapping)
            own["bins"] = bins if is_whole else {"low": low, "high": high, "count": count}
        return self.query(name, kind, **_with(fields, **own))

    def quantiles(
        self,
        name: str,
        *,
        of: str,
        at: Sequence[str],
        within: tuple[int, int],
        **fields: Any,
    ) -> Self:
        """Ask for several quantiles of an integer column, all from one charge."""
        low, high = _ends("within", within)
        own = _with(fields, at=at, domain={"ordered": {"min": low, "max": high}})
        return self.query(name, "quantiles", of=of, **own)

    @property
    def text(self) -> str:
        """The spec."""
        own = self.dataset
        plain = {
            "spec": _FORMAT,
            "release": dict(self.about),
            # The frame stands in for the file, which a later run may read.
            "tables": {own.name: {"path": f"{own.name}.parquet", "columns": dict(own.columns)}},
            "privacy": dict(own.privacy),
            "budget": dict(self.budget),
            "keys": dict(own.keys),
            "queries": self.queries,
        }
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)

    def write(self, path: str | Path) -> Path:
        """Write the spec to a new file.

        Raises:
            StorageError: there is a file already, or it cannot be written.
        """
        place, text = Path(path), self.text
        try:
            with place.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError as error:
            raise StorageError(f"{place} is there already; name another file") from error
        except OSError as error:
            raise StorageError(f"{place} cannot be written: {error.strerror}") from error
        return place

    def plan(self) -> Plan:
        """What the release costs and how near its answers are; as :func:`release.plan`."""
        return self._handed(self.dataset.verbs.plan)

    def check(self) -> Rehearsal:
        """What the frame leaves out; confidential; as :func:`release.check`."""
        return self._handed(self.dataset.verbs.check, tables=self._frames)

    def run(self, out: str | Path, *, key: str | Path | None = None) -> Published:
        """Publish the release into ``out``; as :func:`release.run`."""
        return self._handed(self.dataset.verbs.run, out, tables=self._frames, key=key)

    @property
    def _frames(self) -> dict[str, Any]:
        return {self.dataset.name: self.dataset.frame}

    def _handed(self, verb: Callable[..., T], *given: Any, **named: Any) -> T:
        with tempfile.TemporaryDirectory() as folder:
            return verb(self.write(Path(folder) / "spec.yaml"), *given, **named)


def plain(at: str, value: Any) -> Any:  # noqa: PLR0911, PLR0912 - one for each kind of value
    """A value as YAML has it; those of NumPy and pandas as Python's own.

    Raises:
        SpecError: it is of a type that no spec has. Of the value itself nothing is said: it may be
            a part of a confidential frame.
    """
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            # Those of NumPy are subclasses, which YAML does not write.
            return kind(value)
    if isinstance(value, Fraction):
        return format_exact(value)
    if isinstance(value, datetime.datetime):
        # NaT is a time to Python, and none to itself.
        if value != value:  # noqa: PLR0124
            raise SpecError(at, "found NaT; write a date")
        is_midnight = value.time() == datetime.time() and value.tzinfo is None
        return value.date() if is_midnight else value.isoformat(" ")
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, Mapping):
        # Named by their number: a name may be a value of a frame.
        entries = {}
        for place, (name, each) in enumerate(value.items()):
            if not isinstance(name, str):
                raise SpecError(at, "found fields whose names are no text; write names")
            entries[str(name)] = plain(f"{at}[{place}]", each)
        return entries
    if isinstance(value, Sequence | Set):
        return [plain(f"{at}[{place}]", each) for place, each in enumerate(value)]
    found = type(value).__name__
    # Keys are public, and a column of a public table is a good source; elsewhere it is a condition
    # on a frame, which a spec writes in SQL.
    if found == "Series" and not at.startswith("keys."):
        raise SpecError(at, 'found Series; write text, such as "age > 18"')
    # Arrays, indexes and scalars of NumPy, pandas and Polars, without those libraries.
    for name in ("tolist", "to_list"):
        listed = getattr(value, name)() if hasattr(value, name) else value
        if type(listed) is not type(value):
            return plain(at, listed)
    raise SpecError(at, f"found {found}; write text, a number, or a list of them")


def _ends(field: str, given: object) -> list[int]:
    """The lower and the upper end of a range of whole numbers."""
    ends = plain(field, given)
    if not isinstance(ends, list) or [type(end) for end in ends] != [int, int]:
        raise SpecError(field, "write two whole numbers, such as (0, 100)")
    if ends[0] >= ends[1]:
        raise SpecError(field, "the first number has to be below the second")
    return ends


def _with(fields: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    """The fields of a question with those that the method writes itself."""
    for name in own:
        if name in fields:
            raise SpecError(name, "follows from the other arguments; leave it out, or use query()")
    return {**own, **fields}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def types_of(frame: Any, given: Mapping[str, str]) -> dict[str, str]:
    """The type of each column as a spec declares it, by its dtype alone; no value is read.

    ``given`` are types of the caller's own. A column of a type that no spec has is left out.

    Raises:
        SpecError: it is no frame, or ``given`` names a column that is not there.
    """
    from release.tables.frames import schema_of
    from release.tables.schemas import type_of

    types: dict[str, str] = {}
    if not isinstance(given, Mapping):
        raise SpecError("columns", 'write names with types, such as {"day": "date"}')
    schema = schema_of(frame)
    for name in given:
        if name not in schema.names:
            raise SpecError("columns", unknown_name(name, schema.names))
    for name, stored in zip(schema.names, schema.types, strict=True):
        if name in given:
            types[name] = plain(f"columns.{name}", given[name])
            continue
        kind = type_of(stored)
        if kind is not None:
            types[name] = kind.value
    return types
