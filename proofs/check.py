"""Checks the proofs of this folder with Coq, and what they assume: ``python3 proofs/check.py OUT``.

Every source is compiled into ``OUT``, in the order of what it requires. Then Coq prints for every
theorem which axioms it rests on. The exit status is 1 if a source does not compile, if a theorem
rests on an axiom that is not in ``ALLOWED``, or if a source holds a word that leaves a gap; it is 3
if there is no Coq. Only the standard libraries of Python and of Coq are needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LIBRARY = "DPRelease"
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec": "the reals: a decidable property of all numbers",
    "ClassicalDedekindReals.sig_not_dec": "the reals: excluded middle for negations",
    "FunctionalExtensionality.functional_extensionality_dep": "equal values make equal functions",
    "Classical_Prop.classic": "excluded middle, which Coq's calculus uses",
}
"""The axioms of Coq's real numbers and calculus, by name, with what they say."""

GAPS = re.compile(
    r"\b(Admitted|admit|Abort|Axioms?|Parameters?|Conjecture|bypass_check|Unset\s+\w+\s+Checking)\b"
)
"""Words that leave something unproved; they stand in no source, not even in a comment."""

THEOREM = re.compile(r"^Theorem\s+(\w+)", re.MULTILINE)
_REQUIRED = re.compile(rf"^From {LIBRARY} Require Import ([\w\s]+)\.", re.MULTILINE)
_MARK = "theorem: "


@dataclass(frozen=True)
class Theorem:
    """A theorem by its file, without ``.v``, and its name, and the axioms it rests on."""

    file: str
    name: str
    axioms: tuple[str, ...] = ()


class ProofError(Exception):
    """Something is not proved; the message says where."""


def sources() -> dict[str, str]:
    """The text of each source by the name of its file, each behind those it requires."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.v"))}
    ordered: dict[str, str] = {}

    def add(name: str) -> None:
        for line in _REQUIRED.findall(texts[name]):
            for required in line.split():
                add(required)
        ordered.setdefault(name, texts[name])

    for name in texts:
        add(name)
    return ordered


def gaps(text: str) -> list[str]:
    """The words of a source that leave something unproved."""
    return [found[0] for found in GAPS.finditer(text)]


def theorems(texts: dict[str, str]) -> list[Theorem]:
    """Every statement of the sources that calls itself a theorem."""
    return [Theorem(file, name) for file, text in texts.items() for name in THEOREM.findall(text)]


def compiled(file: Path, out: Path, coqc: str) -> str:
    """Compile a file into ``out``; returns what Coq printed.

    Raises:
        ProofError: it does not compile.
    """
    target = out / f"{file.stem}.vo"
    command = [coqc, "-q", "-noglob", "-Q", str(out), LIBRARY, "-o", str(target), str(file)]
    # In ``out``, because Coq leaves files of its own where it is started.
    done = subprocess.run(  # noqa: S603 - coqc by its full path, with files of this folder
        command, capture_output=True, text=True, check=False, cwd=out
    )
    if done.returncode != 0:
        raise ProofError(f"{file.name} does not compile:\n{done.stderr.strip()}")
    return done.stdout


def question(asked: list[Theorem]) -> str:
    """A source that makes Coq print the axioms of each theorem, behind a mark with its name."""
    lines = required(asked)
    for theorem in asked:
        name = f"{theorem.file}.{theorem.name}"
        lines += marked(name, f"{LIBRARY}.{name}")
    return "\n".join([*lines, ""])


def required(asked: list[Theorem]) -> list[str]:
    """The lines that load the files of the theorems."""
    files = dict.fromkeys(theorem.file for theorem in asked)
    return [f"From {LIBRARY} Require {file}." for file in files]


def marked(name: str, definition: str) -> list[str]:
    """The lines that print the axioms of a definition behind a mark with this name."""
    mark = f'Goal True. idtac "{_MARK}{name}". exact I. Qed.'
    return [mark, f"Print Assumptions {definition}."]


def answers(printed: str) -> list[Theorem]:
    """The theorems with their axioms, from what Coq printed."""
    found = []
    for part in printed.split(_MARK)[1:]:
        name, _, rest = part.partition("\n")
        file, _, theorem = name.strip().partition(".")
        # Types of axioms are indented, or follow a colon.
        axioms = re.findall(r"^([\w.]+)\s*(?=:|$)", rest.partition("Axioms:")[2], re.MULTILINE)
        if not axioms and "Closed under the global context" not in rest:
            raise ProofError(f"{name}: Coq printed no axioms that can be read:\n{rest}")
        found.append(Theorem(file, theorem, tuple(sorted(axioms))))
    return found


def foreign(theorem: Theorem) -> list[str]:
    """The axioms of a theorem that are not allowed."""
    return [axiom for axiom in theorem.axioms if axiom not in ALLOWED]


def together(asked: list[Theorem]) -> str:
    """A source that makes Coq print the axioms that any of the theorems rests on.

    Coq walks through all that a question rests on: once for all takes seconds, once for each of
    them more than all proofs.
    """
    named = ", ".join(f"@{LIBRARY}.{theorem.file}.{theorem.name}" for theorem in asked)
    definition = f"Definition together := ({named})."
    return "\n".join([*required(asked), definition, *marked("together", "together"), ""])


def compile_all(out: Path, coqc: str) -> dict[str, str]:
    """Compile every source into ``out``; returns their texts.

    Raises:
        ProofError: a source does not compile or has a gap.
    """
    texts = sources()
    for name, text in texts.items():
        if words := gaps(text):
            raise ProofError(f"{name}.v has {', '.join(words)}: something is not proved")
    out.mkdir(parents=True, exist_ok=True)
    for name in texts:
        compiled(FOLDER / f"{name}.v", out, coqc)
    return texts


def checked(out: Path, coqc: str) -> list[Theorem]:
    """All theorems with the axioms each rests on.

    Raises:
        ProofError: a source does not compile or has a gap, or an axiom is not allowed.
    """
    out = out.resolve()
    asked = theorems(compile_all(out, coqc))
    asking = out / "Assumptions.v"
    asking.write_text(question(asked), "utf-8")
    proved = answers(compiled(asking, out, coqc))
    if [(each.file, each.name) for each in proved] != [(each.file, each.name) for each in asked]:
        raise ProofError("Coq did not answer for every theorem")
    for theorem in proved:
        if named := ", ".join(foreign(theorem)):
            raise ProofError(f"{theorem.file}.{theorem.name} rests on {named}")
    return proved


def main(arguments: list[str]) -> int:
    """Check and print; returns the exit status."""
    coqc = shutil.which("coqc")
    if coqc is None:
        sys.stderr.write("There is no coqc: install Debian's package coq (apt install coq).\n")
        return 3
    try:
        proved = checked(Path(arguments[0] if arguments else "out/proofs"), coqc)
    except ProofError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for theorem in proved:
        axioms = ", ".join(axiom.rpartition(".")[2] for axiom in theorem.axioms) or "none"
        sys.stdout.write(f"{theorem.file}.v  {theorem.name}  axioms: {axioms}\n")
    files = len({theorem.file for theorem in proved})
    sys.stdout.write(f"{len(proved)} theorems in {files} files are proved.\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
