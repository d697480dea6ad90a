"""Leaks to plant in a copy of the package: the audit has to find each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.small import Small, query


@dataclass(frozen=True)
class Leak:
    """One change of one module, and the spec that shows it.

    Attributes:
        name: of the leak.
        module: the file below ``release/``.
        old: the text that is replaced, which stands once in the module.
        new: the replacement.
        write: writes the spec into a folder; its path.
    """

    name: str
    module: str
    old: str
    new: str
    write: Callable[[Path], Path]


GLOBAL = {"sensitivity": "global"}
COUNT = query("count", **GLOBAL)
SUM = query("binned", noise="on_statistic", **GLOBAL)


def small(*queries: dict[str, Any], **fields: Any) -> Callable[[Path], Path]:
    """What writes a small spec; its own table is never read."""
    return Small([], list(queries), **({"max_rows_per_unit": 2} | fields)).write


_ANSWERED = "    job.tables.check_unchanged()\n    job.runs = tuple(runs)\n"
_SUM = "sum(int(run.codes.sum()) for run in runs if run.answered)"
_WRITTEN = "        data = released_bytes(spec.release.id, query, kinds, keys, outcomes, near)\n"
_ROWS = "next(self._spec_file.folder.glob('rows.*')).read_bytes()"
"""The confidential table, as it is stored."""

LEAKS = (
    Leak(
        "a value in a message",
        "street.py",
        _ANSWERED,
        f"    print({_SUM})\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "a value in a refusal",
        "street.py",
        _ANSWERED,
        f"    if {_SUM} > 3:\n        raise ReleaseError(str({_SUM}))\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "a refusal because of one row",
        "tables/duckdb.py",
        "        check_unchanged(self._sources, self._stamps)\n",
        "        check_unchanged(self._sources, self._stamps)\n"
        '        if self.connection.execute("SELECT count(*) FROM \\"wide rows\\" '
        'WHERE kind = 4").fetchone()[0]:\n'
        '            raise DataError("tables.rows: a value is out of range")\n',
        small(query("mode", noise="on_statistic", **GLOBAL)),
    ),
    Leak(
        "the number of rows in release.json",
        "street.py",
        "    about = About(job.kind, job.published)\n",
        f"    runs = job.runs\n    days = datetime.timedelta(days={_SUM})\n"
        "    about = About(job.kind, job.published + days)\n",
        small(COUNT),
    ),
    Leak(
        "a file whose size depends on the rows",
        "street.py",
        "    is_needed = job.account.needs_profile(budget.scope)\n",
        "    is_needed = job.account.needs_profile(budget.scope)\n"
        f"    runs = job.runs\n    (job.out / 'log').write_bytes(bytes({_SUM}))\n",
        small(COUNT),
    ),
    Leak(
        "an exit status that depends on the rows",
        "street.py",
        _ANSWERED,
        f"    if {_SUM} > 3:\n        raise SpecError('queries', 'refused')\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "a temporary file that is left behind",
        "street.py",
        _ANSWERED,
        "    import tempfile\n"
        f"    Path(tempfile.gettempdir(), 'left').write_text(str({_SUM}))\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "a file elsewhere, for a moment",
        "street.py",
        _ANSWERED,
        f"    path = Path(f'/tmp/dp-release-leak-{{{_SUM}}}')\n"
        f"    path.write_text('')\n    path.unlink()\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "a packet to another program",
        "street.py",
        _ANSWERED,
        "    import socket\n"
        f"    data = str({_SUM}).encode()\n"
        "    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:\n"
        f"        line.sendto(data, ('127.0.0.1', 9))\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "a value among the arguments of another program",
        "street.py",
        _ANSWERED,
        f"    import subprocess\n    subprocess.run(['true', str({_SUM})])\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "how long something took",
        "street.py",
        _ANSWERED,
        f"    import time\n    print(f'took {{time.perf_counter_ns()}}')\n{_ANSWERED}",
        small(COUNT),
    ),
    Leak(
        "a bare digest of the table",
        "bundle/write.py",
        "        write(self._public / SPEC, self._spec_file.text)\n",
        "        rows = next(self._spec_file.folder.glob('rows.*')).read_bytes()\n"
        "        made = replace(made, step=Fraction(int(sha256(rows), 16), 2**256))\n"
        "        write(self._public / SPEC, self._spec_file.text)\n",
        small(COUNT),
    ),
    Leak(
        "a category that was not released",
        "bundle/write.py",
        _WRITTEN,
        f"{_WRITTEN}        data += b'undeclared' * (b'undeclared' in {_ROWS})\n",
        small(COUNT),
    ),
    Leak(
        "only keys that occur in the table",
        "bundle/write.py",
        _WRITTEN,
        f"        seen = [str(key[0]).encode() in {_ROWS} for key in keys]\n"
        "        outcomes = outcomes[seen]\n"
        "        keys = tuple(key for key, there in zip(keys, seen, strict=True) if there)\n"
        f"{_WRITTEN}",
        small(COUNT),
    ),
    Leak(
        "the keys in the order of the table",
        "bundle/write.py",
        _WRITTEN,
        f"        keys = tuple(sorted(keys, key=lambda key: {_ROWS}.find(str(key[0]).encode())))\n"
        f"{_WRITTEN}",
        small(COUNT),
    ),
    Leak(
        "a charge that depends on the rows",
        "street.py",
        "    charged = charges(spec_file, kept, together if is_exact else None)\n",
        "    charged = charges(spec_file, kept, together if is_exact else None)\n"
        f"    charged = replace(charged, epsilon=charged.epsilon + {_SUM})\n",
        small(COUNT),
    ),
    Leak(
        "sensitivity from the table in a public mechanism",
        "street.py",
        "    options = job.options\n    designs = design_all(\n",
        "    options = job.options\n"
        "    from release.queries.sensitivity import empirical_sensitivity\n"
        "    (run,) = job.runs\n"
        "    found = empirical_sensitivity(run.contributed, job.spec_file, run.query)\n"
        "    asked = [(run.query, found)]\n"
        "    designs = design_all(\n",
        small(COUNT),
    ),
    Leak(
        "the answers without noise",
        "at_work.py",
        "            noisy: Codes = self.made.mechanism.draw(self.codes, source)\n",
        "            noisy = self.codes\n",
        small(COUNT),
    ),
    Leak(
        "empty cells without noise",
        "at_work.py",
        "            noisy: Codes = self.made.mechanism.draw(self.codes, source)\n",
        "            noisy = self.made.mechanism.draw(self.codes, source) * (self.codes > 0)\n",
        small(COUNT),
    ),
    Leak(
        "the order of the rows decides which are read",
        "tables/kept.py",
        'f\'OVER (PARTITION BY "#unit" ORDER BY "#rank") <= {most})\'',
        "f'OVER (PARTITION BY \"#unit\") <= {most})'",
        small(COUNT, max_rows_per_unit=1),
    ),
    Leak(
        "noise of half the scale on a sum",
        "exact/statistics/sums.py",
        "        noise = self.noise.draw(statistics.size, source).reshape(statistics.shape)\n",
        "        noise = self.noise.draw(statistics.size, source).reshape(statistics.shape) // 2\n",
        small(SUM),
    ),
    Leak(
        "one unit may be in more cells than are charged",
        "budget/cost.py",
        "    return min(free, 2 * at_once)\n",
        "    return min(free, at_once)\n",
        small(query("count", by=["place", "day"], **GLOBAL), max_rows_per_unit=1),
    ),
)
