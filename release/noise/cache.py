"""Laws kept on disk, so that a scheduled job solves each problem once.

A file is named by the SHA-256 of everything that was asked: group, differences, guarantee, costs,
demands, the gap and the version of this distribution. It holds the law as integers, never a pickle,
and is believed no further than a solver: the guarantee is proved anew on every load, and the loss
computed anew; only the lower bound is taken from the file.

Only what is public may be kept. A law that follows from differences seen in a confidential table
would carry them out of the auditor bundle, so the pipeline keeps laws of worst-case queries only.
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
from release.exact.constraints import Constraint, keeps_all
from release.exact.losses import Loss, WorstCaseLoss
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.exact.privacy import Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import GAP, Design
from release.noise.solve import TIME_LIMIT, design
from release.noise.solvers.answer_laws import design_channel
from release.noise.solvers.answer_problem import LINEAR_PROGRAM, ChannelDesign, ChannelProblem
from release.version import VERSION

_VARIABLE = "DP_RELEASE_CACHE"

_SCHEMA = "dp-release/cached-law/v1"
_CHANNEL_SCHEMA = "dp-release/cached-channel/v1"


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
        time_limit: float = TIME_LIMIT,
        gap: Fraction = GAP,
    ) -> Design[Modular]:
        """As :func:`release.noise.solve.design`, from the folder where it was solved before.

        Only designs proved to be within ``gap`` are kept. A file that cannot be read, or does not
        keep its promise, counts as absent; a folder that cannot be written is no error.
        """
        key = key_of(sensitivity, guarantee, loss, constraints, gap)
        path = self.folder / f"{key}.json"
        found = _read(path, sensitivity, guarantee, loss, constraints)
        if found is not None and found.is_within(gap):
            return found
        made = design(sensitivity, guarantee, loss, constraints, time_limit=time_limit, gap=gap)
        if made.is_within(gap):
            with contextlib.suppress(OSError):
                self._write(path, _record(made))
        return made

    def channel(self, problem: ChannelProblem) -> ChannelDesign:
        """The channel of a problem, from the folder if it can be.

        Only what a program took long to find is kept; a channel is proved anew on every load.
        """
        path = self.folder / f"{_key_of_channel(problem)}.json"
        found = _read_channel(path, problem)
        if found is not None:
            return found
        made = design_channel(problem)
        if made.method == LINEAR_PROGRAM:
            with contextlib.suppress(OSError):
                self._write(path, _channel_record(made))
        return made

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
    told = os.environ.get(_VARIABLE)
    if told is not None:
        return DesignCache(Path(told)) if told else None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with contextlib.suppress(RuntimeError):  # no home
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
    asked: dict[str, Any] = {
        "version": VERSION,
        "group": sensitivity.group.moduli,
        "sensitivity": sensitivity.shifts,
        "directed": sensitivity.directed,
        "definition": guarantee.definition.value,
        "epsilon": str(guarantee.epsilon),
        "delta": str(guarantee.delta),
        "loss": [loss.name, loss.denominator, loss.numerators.tolist()],
        "constraints": [
            [c.name, c.coefficients.tolist(), str(c.limit), c.equal] for c in constraints
        ],
        "gap": str(gap),
    }
    return _address(asked)


def _address(asked: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _key_of_channel(problem: ChannelProblem) -> str:
    guarantee = problem.guarantee
    asked: dict[str, Any] = {
        "version": VERSION,
        "steps": problem.steps,
        "definition": guarantee.definition.value,
        "epsilon": str(guarantee.epsilon),
        "delta": str(guarantee.delta),
        "costs": problem.costs.tolist(),
        "prior": None if problem.prior is None else [str(share) for share in problem.prior],
    }
    return _address(asked)


def _channel_record(made: ChannelDesign) -> dict[str, Any]:
    return {
        "schema": _CHANNEL_SCHEMA,
        "rows": [[str(weight) for weight in row] for row in made.channel.rows.tolist()],
        "lower_bound": str(made.lower_bound),
        "solver": made.solver,
    }


def _read_channel(path: Path, problem: ChannelProblem) -> ChannelDesign | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        channel = Channel.of([[int(weight) for weight in row] for row in record["rows"]])
        fits = channel.rows.shape == problem.costs.shape and problem.keeps(channel)
        loss = problem.loss_of(channel) if fits else Fraction(0)
        bound, solver = Fraction(record["lower_bound"]), str(record["solver"])
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return None
    if record.get("schema") != _CHANNEL_SCHEMA or not (fits and 0 <= bound <= loss):
        return None
    return ChannelDesign(problem, channel, loss, bound, LINEAR_PROGRAM, solver=solver)


def _record(made: Design[Modular]) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "weights": [str(weight) for weight in made.mechanism.pmf.weights.tolist()],
        "method": made.method,
        "lower_bound": str(made.lower_bound),
        "bound_proved": made.bound_proved,
        "solver": made.solver,
        "notes": list(made.notes),
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
        law = Pmf.of(sensitivity.group, (int(weight) for weight in record["weights"]))
        found = Design(
            mechanism=Modular(law),
            sensitivity=sensitivity,
            guarantee=guarantee,
            loss=loss,
            method=str(record["method"]),
            objective=loss.of(law),
            lower_bound=Fraction(record["lower_bound"]),
            bound_proved=bool(record["bound_proved"]),
            solver=str(record["solver"]),
            notes=tuple(map(str, record["notes"])),
            name=Modular.family,
        )
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return None
    if record.get("schema") != _SCHEMA or not 0 <= found.lower_bound <= found.objective:
        return None
    return found if keeps_all(law, sensitivity, guarantee, constraints) else None
