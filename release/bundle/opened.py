"""A public folder as readers take it: what was asked and made, and the tables with their sums.

Reading checks that a file has the SHA-256 of SHA256SUMS, and no more: whether a release is genuine
is for the verifier to say (:mod:`dp_release_verify`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dp_release_verify import forms
from dp_release_verify.digests import SUMS, sha256
from dp_release_verify.errors import Refused
from release.bundle.files.laws import AnyMechanism, mechanism_of
from release.errors import SpecError, VerificationError, listed
from release.exact.integers.noise import IntegerNoise
from release.queries.read import parse_spec
from release.spec.model import Spec
from release.spec.query import Query

if TYPE_CHECKING:
    import pyarrow as pa

RECORD, KEYS, SPEC = "release.json", "keys.json", "spec.yaml"


@dataclass(frozen=True)
class PublicRelease:
    """The public folder of a release.

    Attributes:
        public: the folder.
        sums: the SHA-256 of its files, by their paths.
        record: its ``release.json``.
    """

    public: Path
    sums: Mapping[str, str]
    record: forms.Release

    @property
    def name(self) -> str:
        """The release id."""
        return self.record.asked.release.id

    @property
    def made(self) -> forms.Made:
        """What was made."""
        return self.record.made

    @property
    def tabulations(self) -> list[forms.MadeTabulation]:
        """The tabulations that were made."""
        return self.made.tabulations or []

    @cached_property
    def spec(self) -> Spec:
        """The question, from the spec as it was written.

        Raises:
            VerificationError: it is none that this version reads.
        """
        try:
            return _parsed(self.read(SPEC))
        except SpecError as error:
            raise VerificationError(SPEC, "schema", str(error), "a valid spec") from error

    def query(self, name: str) -> Query:
        """A published question of the spec.

        Raises:
            VerificationError: the spec has none of this name.
        """
        for query in self.spec.released:
            if query.name == name:
                return query
        raise VerificationError(SPEC, "query", name, "a query of the spec")

    def mechanism(self, made: forms.MadeQuery) -> AnyMechanism | None:
        """The mechanism of a question; None where it depends on the table.

        Raises:
            VerificationError: the file holds none for this question.
        """
        if made.mechanism is None:
            return None
        law = self.law(made.mechanism)
        try:
            return mechanism_of(self.spec, self.query(made.name), law)
        except (ValueError, OverflowError) as error:
            file = f"mechanisms/{made.mechanism}.json"
            raise VerificationError(file, "law", str(error), "a mechanism of its query") from error

    def law(self, name: str) -> Any:
        """The law in a file, one of the forms of :data:`dp_release_verify.forms.LAWS`.

        Raises:
            VerificationError: the file holds none.
        """
        file = f"mechanisms/{name}.json"
        try:
            return forms.loads(forms.Law, file, self.read(file))
        except Refused as error:
            raise as_failure(error) from error

    def noise(self, measured: forms.MadeTable) -> IntegerNoise:
        """The noise on a measured table.

        Raises:
            VerificationError: its file holds no noise on the integers.
        """
        law = self.law(measured.mechanism)
        if not isinstance(law, forms.IntegersLaw):
            raise VerificationError(RECORD, measured.name, law.family, "noise on the integers")
        return IntegerNoise.of_law(law.noise)

    def keys(self) -> forms.Keys:
        """All key sets and areas.

        Raises:
            VerificationError: the file has another form.
        """
        try:
            keys: forms.Keys = forms.loads(forms.Keys, KEYS, self.read(KEYS))
        except Refused as error:
            raise as_failure(error) from error
        return keys

    def read(self, file: str) -> bytes:
        """The bytes of a file.

        Raises:
            VerificationError: it is missing, or has another SHA-256 than in SHA256SUMS.
        """
        data = _bytes(self.public, file)
        digest, stated = sha256(data), self.sums.get(file, "none")
        if digest != stated:
            raise VerificationError(file, "SHA-256", digest, stated)
        return data

    def table(self, name: str) -> pa.Table:
        """A released table.

        Raises:
            VerificationError: as :meth:`read`, or it is no Parquet file.
        """
        # Late, so that programs that only compute need not load Arrow.
        import pyarrow as pa
        import pyarrow.parquet as pq

        from release.bundle.tables.parquet import source_of

        file = f"data/{name}.parquet"
        data = self.read(file)
        try:
            # The bytes whose sum was checked, and not the file once more.
            with pq.ParquetFile(source_of(data)) as parquet:
                return parquet.read()
        except (OSError, pa.ArrowException) as error:
            raise VerificationError(file, "format", "nothing readable", "a Parquet file") from error


def release_in(folder: Path, field: str) -> Path:
    """The public folder that is meant: itself, that of a file in it, or the only one of OUT.

    Raises:
        SpecError: it is none, or an output folder of several releases; of the name ``field``.
    """
    remedy = "name OUT/public/RELEASE"
    if folder.is_file():
        folder = folder.parent.parent if folder.parent.name == "data" else folder.parent
    if not folder.is_dir():
        raise SpecError(field, f"no folder {folder}; {remedy}")
    if (folder / RECORD).exists():
        return folder
    if not (folder / "public").is_dir() and folder.parent.name == "auditor":
        raise SpecError(field, f"{folder} is an auditor's folder; {remedy}")
    public = folder / "public" if (folder / "public").is_dir() else folder
    names = [path.parent.name for path in public.glob(f"*/{RECORD}")]
    if len(names) != 1:
        problem = f"holds several releases: {listed(names)}" if names else "holds no release"
        raise SpecError(field, f"{folder} {problem}; {remedy}")
    return public / names[0]


def open_public(public: Path) -> PublicRelease:
    """Open the public folder of a release.

    Raises:
        VerificationError: it holds no release, or its record has another SHA-256 than it says.
    """
    sums = {}
    for line in _bytes(public, SUMS).decode("ascii", "replace").splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    data = _bytes(public, RECORD)
    if sha256(data) != sums.get(RECORD):
        stated = sums.get(RECORD, "none")
        raise VerificationError(RECORD, "SHA-256", sha256(data), stated)
    try:
        record: forms.Release = forms.loads(forms.Release, RECORD, data)
    except Refused as error:
        raise as_failure(error) from error
    return PublicRelease(public, sums, record)


def as_failure(error: Refused) -> VerificationError:
    """A refusal of the forms as an error of this package."""
    return VerificationError(error.file, error.place or "form", error.found, error.needed)


def _bytes(public: Path, file: str) -> bytes:
    try:
        return (public / file).read_bytes()
    except OSError as error:
        raise VerificationError(file, "file", "nothing readable", "a file") from error


@lru_cache(maxsize=2)
def _parsed(text: bytes) -> Spec:
    """The spec of these bytes: a release of a hundred queries has one."""
    return parse_spec(text)
