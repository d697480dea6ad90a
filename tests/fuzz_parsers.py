"""Coverage-guided fuzzing of every parser: ``python -m tests.fuzz_parsers CORPUS [SECONDS]``.

Needs atheris (``pip install '.[fuzz]'``). Whatever the bytes, a parser gives its result or an error
of ours; anything else ends the run and leaves the input in a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["release", "dp_release_verify"]):
    from dp_release_verify import canonical, forms
    from dp_release_verify.checks import read_law
    from dp_release_verify.errors import NotProved, Refused
    from dp_release_verify.parquet import read_table
    from dp_release_verify.signatures import SignatureError
    from release.budget.ledger import open_proof
    from release.budget.state import read_entry
    from release.errors import ReleaseError
    from release.queries.read import parse_spec
    from release.records.signing import PublicKey, open_note

KEY = PublicKey("example.org/dp", bytes(32))

PARSERS: list[Callable[[bytes], object]] = [
    parse_spec,
    lambda data: forms.loads(forms.Release, "release.json", data),
    lambda data: forms.loads(forms.Keys, "keys.json", data),
    lambda data: read_law("law", canonical.loads("law", data)),
    lambda data: read_table("table", data, 4),
    lambda data: open_proof(data, (KEY,)),
    lambda data: read_entry(0, data),
    lambda data: open_note(data.decode("latin-1"), (KEY,)),
    lambda data: PublicKey.of(data.decode("latin-1")),
]


def one_input(data: bytes) -> None:
    """Every parser on one input."""
    for parser in PARSERS:
        try:
            parser(data)
        except (ReleaseError, SignatureError, Refused, NotProved):
            continue


def main(corpus: str, seconds: str = "60") -> None:
    """Fuzz for some seconds, beginning with the files in ``corpus``, which is added to."""
    limits = [f"-max_total_time={seconds}", "-max_len=6000", "-timeout=20"]
    atheris.Setup([sys.argv[0], *limits, corpus], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
