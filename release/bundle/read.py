"""Reading the files of a bundle strictly: plain files of a bounded size, canonical records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from dp_release_verify.digests import sha256_of_file
from release.errors import VerificationError
from release.records.files import MAX_FILE_BYTES
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import parse, parse_plain
from release.records.versions import unread
from release.spec.mechanisms import ON_STATISTIC, any_record_model, formats

R = TypeVar("R", bound=BaseModel)


def read_file(file: str, path: Path) -> bytes:
    """The bytes of a plain file of at most 2^30 bytes; ``file`` is its name in messages.

    Raises:
        VerificationError: it is missing, a link, or too large.
    """
    _check_file(file, path)
    return path.read_bytes()


def hash_of_file(file: str, path: Path) -> str:
    """The SHA-256 of a file as :func:`read_file` takes them, without holding it in memory.

    Raises:
        VerificationError: as :func:`read_file`.
    """
    _check_file(file, path)
    return sha256_of_file(path)


def _check_file(file: str, path: Path) -> None:
    # A link could lead out of the bundle, so that another file would be verified than published.
    if path.is_symlink() or not path.is_file():
        raise VerificationError(file, "file", "nothing or no plain file", "a file")
    # Before it is read: a release of strangers may be as large as their patience.
    if path.stat().st_size > MAX_FILE_BYTES:
        raise VerificationError(file, "size", str(path.stat().st_size), f"at most {MAX_FILE_BYTES}")


def read_record(model: type[R], file: str, path: Path) -> R:
    """A file of a release, by the model of its kind; ``file`` is its name in messages.

    Raises:
        VerificationError: it is missing, too large, or not canonical JSON of the declared shape.
    """
    return parse_record(model, file, read_file(file, path))


def read_mechanism(file: str, path: Path) -> MechanismRecord:
    """The file of a mechanism on answers, by the model of its family.

    Raises:
        VerificationError: as :func:`read_any_mechanism`, or a family on statistics.
    """
    return on_answers(file, read_any_mechanism(file, path))


def read_any_mechanism(file: str, path: Path) -> AnyMechanismRecord:
    """The file of a mechanism, by the model of its family.

    Raises:
        VerificationError: as :func:`read_record`, or the family is not known.
    """
    return parse_any_mechanism(file, read_file(file, path))


def parse_mechanism(file: str, data: bytes) -> MechanismRecord:
    """The record of a mechanism on answers, by the model of the family that it names.

    Raises:
        VerificationError: as :func:`parse_any_mechanism`, or a family on statistics.
    """
    return on_answers(file, parse_any_mechanism(file, data))


def on_answers(file: str, record: AnyMechanismRecord) -> MechanismRecord:
    """The record as one of a mechanism on answers.

    Raises:
        VerificationError: it is one on a statistic.
    """
    if not isinstance(record, MechanismRecord):
        raise VerificationError(file, "mechanism", record.mechanism, "one on answers")
    return record


def parse_any_mechanism(file: str, data: bytes) -> AnyMechanismRecord:
    """The record of a mechanism, by the model of the family that it names.

    Raises:
        VerificationError: not canonical JSON of the declared shape, or an unknown family.
    """
    with _of_declared_shape(file):
        plain = parse_plain(data)
        # The family names the model, so it is read before there is a model to check it with.
        family = plain["mechanism"] if isinstance(plain, dict) else None
    families = [*formats(), *ON_STATISTIC]
    if not isinstance(family, str) or family not in families:
        raise VerificationError(file, "mechanism", repr(family)[:80], f"one of {families}")
    with _of_declared_shape(file):
        # Not read a second time: of a large channel that takes longer than its proof.
        if (later := unread(plain.get("schema"))) is not None:
            raise ValueError(later)
        return any_record_model(family).model_validate(plain)


def parse_record(model: type[R], file: str, data: bytes) -> R:
    """A record by the model of its kind.

    Raises:
        VerificationError: not canonical JSON of the declared shape.
    """
    with _of_declared_shape(file):
        return parse(model, data)


@contextmanager
def _of_declared_shape(file: str) -> Iterator[None]:
    """Refuse a file whose bytes are not canonical JSON of its model."""
    try:
        yield
    except (ValueError, KeyError, RecursionError) as error:
        raise VerificationError(
            file, "schema", _first_problem(error), "canonical JSON of the declared shape"
        ) from error


def _first_problem(error: Exception) -> str:
    # A message of pydantic has several lines, and quotes the whole value.
    errors = getattr(error, "errors", None)
    if callable(errors):
        first = errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg']}"
    return str(error).splitlines()[0]
