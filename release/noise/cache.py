"""Mechanisms on disk, so that a scheduled job solves each problem once.

A file is named by the SHA-256 of the whole problem: group, sensitivity, guarantee, costs,
constraints, the gap and the version of this distribution. It holds the mechanism as integers, never
a pickle, and is trusted no further than a solver: the guarantee is proved and the loss computed
again on every load; only the lower bound is taken from the file.

The cache is public. A mechanism for empirical sensitivity would carry what was seen in a
confidential table out of the auditor's folder, so the pipeline caches worst-case queries only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from release.exact.channel import Channel
from release.exact.losses import Loss, WorstCaseLoss
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.exact.privacy import Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.constraints import Constraint, keeps_all
from release.noise.design import GAP, Design
from release.noise.solve import design
from release.noise.solvers.answers.integer import BRANCH_AND_BOUND, best_channel
from release.noise.solvers.answers.problem import LINEAR_PROGRAM, ChannelDesign, ChannelProblem
from release.version import VERSION

_VARIABLE = "DP_RELEASE_CACHE"

_SCHEMA = "dp-release/cached-law/v1"
_CHANNEL_SCHEMA = "dp-release/cached-channel/v2"

_SOLVED = (LINEAR_PROGRAM, BRANCH_AND_BOUND)
"""The methods of channels that take long to find."""


@dataclass(frozen=True)
class DesignCache:
    """Designs by content in a folder of the user's own, made with mode 0700 when first needed."""

    folder: Path

    def design(
        self,
        sensitivity: Sensitivity,
        guarantee: Guarantee,
        loss: Loss | WorstCaseLoss,
        constraints: Sequence[Constraint] = (),
        *,
        gap: Fraction = GAP,
    ) -> Design[Modular]:
        """As :func:`release.noise.solve.design`, from the folder where it was solved before.

        Only designs proved to be within ``gap`` are cached. A file that cannot be read, or whose
        guarantee fails, counts as absent; a folder that cannot be written is no error.
        """
        key = key_of(sensitivity, guarantee, loss, constraints, gap)
        path = self.folder / f"{key}.json"
        cached = _read(path, sensitivity, guarantee, loss, constraints)
        if cached is not None and cached.is_within(gap):
            return cached
        solution = design(sensitivity, guarantee, loss, constraints, gap=gap)
        # What the work limit cut off is no optimum, and is not kept.
        if solution.is_within(gap):
            with contextlib.suppress(OSError):
                self._write(path, _record(solution))
        return solution

    def channel(self, problem: ChannelProblem) -> ChannelDesign:
        """The channel of a problem, from the folder where it was solved before.

        Only channels of programs, which take long, are cached; each is proved on every load.
        """
        path = self.folder / f"{_key_of_channel(problem)}.json"
        cached = _read_channel(path, problem)
        if cached is not None:
            return cached
        solution = best_channel(problem)
        if solution.method in _SOLVED:
            with contextlib.suppress(OSError):
                self._write(path, _channel_record(solution))
        return solution

    def _write(self, path: Path, record: dict[str, Any]) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Written aside and renamed: two jobs may solve the same problem at once.
        handle, aside = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(record, file)
            Path(aside).rename(path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise


def default_cache() -> DesignCache | None:
    """``$DP_RELEASE_CACHE`` (empty: no cache), or the user's cache folder."""
    folder = os.environ.get(_VARIABLE)
    if folder is not None:
        return DesignCache(Path(folder)) if folder else None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    # A user without a home folder has no cache.
    with contextlib.suppress(RuntimeError):
        return DesignCache(Path(base).expanduser() / "dp-release" / "mechanisms")
    return None


def key_of(
    sensitivity: Sensitivity,
    guarantee: Guarantee,
    loss: Loss | WorstCaseLoss,
    constraints: Sequence[Constraint],
    gap: Fraction,
) -> str:
    """The content address of a problem: 64 hexadecimal digits."""
    stated = []
    for constraint in constraints:
        coefficients, limit = constraint.coefficients.tolist(), str(constraint.limit)
        stated.append([constraint.name, coefficients, limit, constraint.equal])
    problem: dict[str, Any] = {
        "version": VERSION,
        "group": sensitivity.group.moduli,
        "sensitivity": sensitivity.shifts,
        "directed": sensitivity.directed,
        "definition": guarantee.definition.value,
        "epsilon": str(guarantee.epsilon),
        "delta": str(guarantee.delta),
        "loss": [loss.name, loss.denominator, loss.numerators.tolist()],
        "constraints": stated,
        "gap": str(gap),
    }
    return _address(problem)


def _address(problem: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(problem, sort_keys=True).encode()).hexdigest()


def _key_of_channel(problem: ChannelProblem) -> str:
    guarantee = problem.guarantee
    content: dict[str, Any] = {
        "version": VERSION,
        "steps": problem.steps,
        "definition": guarantee.definition.value,
        "epsilon": str(guarantee.epsilon),
        "delta": str(guarantee.delta),
        "costs": problem.costs.tolist(),
        "prior": None if problem.prior is None else list(map(str, problem.prior)),
    }
    return _address(content)


def _channel_record(solution: ChannelDesign) -> dict[str, Any]:
    return {
        "schema": _CHANNEL_SCHEMA,
        "rows": solution.channel.rows.astype(str).tolist(),
        "method": solution.method,
        "lower_bound": str(solution.lower_bound),
        "solver": solution.solver,
        "notes": list(solution.notes),
    }


def _read_channel(path: Path, problem: ChannelProblem) -> ChannelDesign | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        channel = Channel.of([list(map(int, row)) for row in record["rows"]])
        fits = channel.rows.shape == problem.costs.shape and problem.is_satisfied_by(channel)
        loss = problem.loss_of(channel) if fits else Fraction(0)
        bound, solver = Fraction(record["lower_bound"]), str(record["solver"])
        method, notes = str(record["method"]), tuple(map(str, record["notes"]))
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return None
    # A bound above the loss would claim that no channel can lose as little as this one does.
    is_known = record.get("schema") == _CHANNEL_SCHEMA and method in _SOLVED
    if not (is_known and fits and 0 <= bound <= loss):
        return None
    return ChannelDesign(problem, channel, loss, bound, method, solver=solver, notes=notes)


def _record(solution: Design[Modular]) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "weights": list(map(str, solution.mechanism.pmf.weights.tolist())),
        "method": solution.method,
        "lower_bound": str(solution.lower_bound),
        "bound_proved": solution.bound_proved,
        "solver": solution.solver,
        "notes": list(solution.notes),
    }


def _read(
    path: Path,
    sensitivity: Sensitivity,
    guarantee: Guarantee,
    loss: Loss | WorstCaseLoss,
    constraints: Sequence[Constraint],
) -> Design[Modular] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        pmf = Pmf.of(sensitivity.group, map(int, record["weights"]))
        solution = Design(
            mechanism=Modular(pmf),
            sensitivity=sensitivity,
            guarantee=guarantee,
            loss=loss,
            method=str(record["method"]),
            objective=loss.of(pmf),
            lower_bound=Fraction(record["lower_bound"]),
            bound_proved=bool(record["bound_proved"]),
            solver=str(record["solver"]),
            notes=tuple(map(str, record["notes"])),
            name=Modular.family,
        )
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return None
    if record.get("schema") != _SCHEMA or not 0 <= solution.lower_bound <= solution.objective:
        return None
    return solution if keeps_all(pmf, sensitivity, guarantee, constraints) else None
