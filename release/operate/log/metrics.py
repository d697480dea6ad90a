"""The state of a ledger and the ends of runs as an OpenMetrics file, from fixed fields.

Everything here is in the ledger, or in the log as a code of a closed list. There is no count of
rows and no duration. A figure is a float for dashboards: what is spent is rounded up, and what is
left down.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from release.budget.ledger import Abort, Replayed
from release.bundle.evidence.line import Code, LogLine
from release.errors import Reason
from release.records.models import Exact

_UNTOLD = "unknown"
"""The reason of an abort that an older version recorded."""


def metrics_text(ledger: Replayed, lines: Sequence[LogLine]) -> str:
    """The metrics of a ledger, and of a log where there is one."""
    state = ledger.state
    families = [
        _family("dp_release_ledger_entries", "gauge", "entries of the ledger", {(): state.size}),
        _family(
            "dp_release_releases",
            "gauge",
            "releases by what became of them",
            {
                (("state", "public"),): len(state.committed.keys() - state.withdrawn),
                (("state", "withdrawn"),): len(state.withdrawn),
                (("state", "revised"),): len(state.revised),
                (("state", "skipped"),): len(state.skipped),
                (("state", "running"),): len(state.running),
            },
        ),
        _family("dp_release_aborts", "counter", "releases that were given up", _aborts(ledger)),
        *_budget(ledger),
    ]
    if lines:
        families += _ends(lines)
    # OpenMetrics asks for this line: a text without it was cut off on its way.
    return "".join(families) + "# EOF\n"


Labels = tuple[tuple[str, str], ...]


def _family(
    name: str, kind: str, text: str, samples: Mapping[Labels, float], unit: str = ""
) -> str:
    """The lines of one metric; counters have the suffix that the format asks for."""
    lines = [f"# TYPE {name} {kind}"]
    if unit:
        lines.append(f"# UNIT {name} {unit}")
    lines.append(f"# HELP {name} {text}")
    suffix = "_total" if kind == "counter" else ""
    for labels, value in samples.items():
        inner = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels)
        shown = f"{{{inner}}}" if inner else ""
        lines.append(f"{name}{suffix}{shown} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _aborts(ledger: Replayed) -> dict[Labels, float]:
    counted: Counter[Labels] = Counter()
    for entry in ledger.entries:
        if isinstance(entry, Abort):
            drawn = "yes" if entry.drawn else "no"
            counted[("reason", entry.reason or _UNTOLD), ("drawn", drawn)] += 1
    return dict(sorted(counted.items()))


def _budget(ledger: Replayed) -> Iterable[str]:
    """ε and δ of each scope as stated, and how much of its cap is used by its own rule."""
    cap: dict[Labels, float] = {}
    stated: dict[Labels, float] = {}
    left: dict[Labels, float] = {}
    for scope, account in sorted(ledger.state.accounts.items()):
        spent = account.spent()
        amounts: dict[str, tuple[Fraction, Exact]] = {
            "epsilon": (spent.epsilon, account.cap.epsilon),
            "delta": (spent.delta, account.cap.delta),
        }
        for name, (used, most) in amounts.items():
            labels = (("scope", scope), ("amount", name))
            # A cap down and a charge up: a panel may show too little room, and never too much.
            cap[labels] = rounded_down(Fraction(most))
            stated[labels] = rounded_up(used)
        labels = (("scope", scope), ("rule", account.cap.rule))
        whole, level = account.level_cap(), account.level()
        left[labels] = rounded_down(max(Fraction(0), 1 - level / whole)) if whole else 0.0
    yield _family("dp_release_cap", "gauge", "the caps of a scope", cap)
    yield _family("dp_release_charged", "gauge", "stated charges that stand, added up", stated)
    yield _family(
        "dp_release_left_ratio", "gauge", "what is left of a cap, by the rule of its scope", left
    )


def _ends(lines: Sequence[LogLine]) -> Iterable[str]:
    refusals = Counter(line.reason for line in lines if line.code is Code.REFUSED)
    # Every reason, also those that never came: a rate needs the zero before the first.
    counted: dict[Labels, float] = {(("reason", r.value),): refusals[r] for r in Reason}
    yield _family("dp_release_refusals", "counter", "runs that were refused, by reason", counted)
    last: dict[Labels, float] = {}
    for line in lines:
        if line.code in (Code.PUBLISHED, Code.REFUSED, Code.CAUGHT_UP):
            moment = datetime.datetime.fromisoformat(line.time)
            last[("code", line.code.value),] = moment.timestamp()
    yield _family(
        "dp_release_last_end_timestamp_seconds",
        "gauge",
        "when a run last ended so",
        dict(sorted(last.items())),
        "seconds",
    )


def rounded_up(value: Fraction) -> float:
    """The least float that is not below a rational."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def rounded_down(value: Fraction) -> float:
    """The largest float that is not above a rational."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
