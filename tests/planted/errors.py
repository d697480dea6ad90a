"""The planted errors, as data: one mistake each, with the specs that show it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SeenBy(StrEnum):
    """Who can notice an error.

    ``files``: a verifier, from the files of the release. ``residuals``: a verifier of enough noisy
    answers. ``audit``: only who has the confidential table or draws again. ``nobody``: no check
    looks at it.
    """

    FILES = "files"
    RESIDUALS = "residuals"
    AUDIT = "audit"
    NOBODY = "nobody"


@dataclass(frozen=True)
class Planted:
    """One mistake.

    Attributes:
        name: of the error.
        group: what the mistake is about.
        module: the file below ``release/``, or with the name of another package.
        old: the text that is replaced, which stands once in the module.
        new: the replacement.
        specs: the names of the specs that show it, of :mod:`tests.planted.specs`.
        is_private: whether the published guarantee would be false; else only a file would be.
        seen_by: who can notice it.
    """

    name: str
    group: str
    module: str
    old: str
    new: str
    specs: tuple[str, ...]
    is_private: bool = True
    seen_by: SeenBy = SeenBy.FILES


def _of(group: str, module: str, *errors: tuple[str, str, str, str]) -> tuple[Planted, ...]:
    """Errors of one module that make a guarantee false: name, old, new and specs."""
    return tuple(
        Planted(name, group, module, old, new, tuple(specs.split()))
        for name, old, new, specs in errors
    )


def _files(group: str, module: str, *errors: tuple[str, str, str, str]) -> tuple[Planted, ...]:
    """As :func:`_of`, of errors that make a file false, and no guarantee."""
    return tuple(
        Planted(name, group, module, old, new, tuple(specs.split()), False)
        for name, old, new, specs in errors
    )


def _audit(module: str, *errors: tuple[str, str, str, str]) -> tuple[Planted, ...]:
    """Errors in what is read or drawn, of which the files show nothing."""
    group = "draw" if module.startswith(("exact", "job")) else "query engine"
    return tuple(
        Planted(name, group, module, old, new, tuple(specs.split()), seen_by=SeenBy.AUDIT)
        for name, old, new, specs in errors
    )


def _unheard(module: str, *errors: tuple[str, str, str, str]) -> tuple[Planted, ...]:
    """Errors by which noise is missing, which many answers of public tables show."""
    return tuple(
        Planted(name, "draw", module, old, new, tuple(specs.split()), seen_by=SeenBy.RESIDUALS)
        for name, old, new, specs in errors
    )


_CELLS = (
    *_of(
        "cells",
        "budget/cost.py",
        (
            "a replaced unit leaves its cells and enters none",
            "return min(free, 2 * at_once)",
            "return min(free, at_once)",
            "wide",
        ),
        (
            "without max_cells_per_unit a unit has one cell",
            "min(free, rows_read(spec_file.spec, query), most or free)",
            "min(free, rows_read(spec_file.spec, query), most or 1)",
            "replaced added",
        ),
        (
            "fixed keys vary and the others do not",
            "spec_file.cells(column for column in query.by if column not in fixed)",
            "spec_file.cells(column for column in query.by if column in fixed)",
            "fixed",
        ),
        (
            "a changed attribute only adds cells",
            "    if spec_file.spec.privacy.neighbors is Relation.ADD_REMOVE:\n"
            "        return at_once",
            "    if spec_file.spec.privacy.neighbors is not Relation.REPLACE_ONE:\n"
            "        return at_once",
            "attribute",
        ),
        (
            "a statement touches one cell",
            "        return spec_file.cells(query.by)\n    free,",
            "        return 1\n    free,",
            "statement",
        ),
    ),
    *_of(
        "cells",
        "tabulations/measure/table_count.py",
        (
            "the cells of one area stand for those of all",
            "        return self.cells\n",
            "        return self.cells_of_an_area\n",
            "tabulated",
        ),
    ),
)

_CHARGES = (
    *_of(
        "charges",
        "budget/cost.py",
        (
            "δ is charged for one cell",
            "times * claimed.epsilon, cells * kept.delta",
            "times * claimed.epsilon, kept.delta",
            "replaced",
        ),
        (
            "ε is charged for one cell",
            "Charge(cells, times * claimed.epsilon,",
            "Charge(cells, claimed.epsilon,",
            "replaced",
        ),
        (
            "every mechanism is charged in proportion",
            "moved_together(spec_file, query) if kept.in_proportion else cells",
            "moved_together(spec_file, query)",
            "stepped",
        ),
        (
            "of what a replaced unit moves together one half is charged",
            "together *= 2",
            "together *= 1",
            "stepped replaced",
        ),
        (
            "one row is charged for all of a unit",
            "rows * spreads.row)",
            "spreads.row)",
            "added",
        ),
        (
            "of all δ the largest is charged",
            "delta = sum((charge.delta for charge in queries), Fraction(0))",
            "delta = max((charge.delta for charge in queries), default=Fraction(0))",
            "replaced",
        ),
        (
            "the cap on ε is not looked at",
            '_check_cap("epsilon", total.epsilon, spec.budget.epsilon)',
            '_check_cap("epsilon", total.delta, spec.budget.epsilon)',
            "over",
        ),
        (
            "instance-specific queries are left out of the total",
            "return together.total(delta, _sum(public)) + added",
            "return together.total(delta, _sum(public))",
            "exactly",
        ),
    ),
)

_BOUNDS = (
    *_of(
        "bounds",
        "queries/kinds/count.py",
        (
            "a count moves by one row",
            "        # Clamping to the domain never widens a change.\n"
            "        most = rows if self.query.of is None else 1",
            "        # Clamping to the domain never widens a change.\n        most = 1",
            "replaced added",
        ),
    ),
    *_of(
        "bounds",
        "queries/kinds/binned.py",
        (
            "a change of less than a bin is no change",
            "-(least * r.count // (r.high - r.low)), -(-most * r.count // (r.high - r.low))",
            "-least * r.count // (r.high - r.low), most * r.count // (r.high - r.low)",
            "sums",
        ),
        (
            "a replaced unit only adds to a sum",
            "if relation is not Relation.ADD_REMOVE:\n            least, most",
            "if relation is Relation.ADD_REMOVE:\n            least, most",
            "sums",
        ),
        (
            "the spread of a sum is that of the larger bound",
            "spread = max(-down, up) if relation is Relation.ADD_REMOVE else up - down",
            "spread = max(-down, up)",
            "sums",
        ),
        (
            "the spread of a mean is that of one row",
            "doubled_unless_added(rows * (high - low), relation)",
            "doubled_unless_added(high - low, relation)",
            "sums",
        ),
    ),
    *_of(
        "bounds",
        "queries/statistics.py",
        (
            "a replaced unit moves as much as a new one",
            "return range_of_a_unit if relation is Relation.ADD_REMOVE else 2 * range_of_a_unit",
            "return range_of_a_unit",
            "sums choices",
        ),
        (
            "the rank of a row that is replaced moves by a smaller share",
            "return 2 * rows * (max(a, b - a) if relation is Relation.ADD_REMOVE else b)",
            "return 2 * rows * max(a, b - a)",
            "sums",
        ),
        (
            "a place moves one way only",
            'rows changes :func:`place_scores`."""\n    return 2 * rows',
            'rows changes :func:`place_scores`."""\n    return rows',
            "sums",
        ),
    ),
    *_of(
        "bounds",
        "queries/kinds/mode.py",
        (
            "rows count as units",
            "most = 1 if self.counts_units else rows * heaviest",
            "most = heaviest",
            "choices",
        ),
        (
            "a weight is bounded by its upper bound",
            "heaviest = 1 if self.clamp is None else max(map(abs, self.clamp))",
            "heaviest = 1 if self.clamp is None else self.clamp[1]",
            "choices",
        ),
        (
            "a unit of several rows is in one category",
            "is_counted = self.weight is None and rows == 1",
            "is_counted = self.weight is None and self.counts_units",
            "choices",
        ),
    ),
    *_of(
        "bounds",
        "queries/kinds/top.py",
        (
            "a unit of several rows touches one category",
            "(min(rows, size), 1) if self.counts_units else (1, rows)",
            "(1, 1) if self.counts_units else (1, rows)",
            "choices",
        ),
    ),
    *_of(
        "bounds",
        "exact/statistics/top/bounds.py",
        (
            "the norm of a replaced unit is that of a new one",
            "changed = 2 * self.touched if self.is_replaced else self.touched",
            "changed = self.touched",
            "choices",
        ),
    ),
    *_of(
        "bounds",
        "exact/statistics/joint_quantiles.py",
        (
            "quantiles move by a row one way",
            "return 2 * rows_per_unit * (sum(steps)",
            "return rows_per_unit * (sum(steps)",
            "choices",
        ),
        (
            "only the weight changes and not the sum of weights",
            "return 2 * 2 * sublevels * spread",
            "return 2 * sublevels * spread",
            "choices",
        ),
    ),
    *_of(
        "bounds",
        "exact/statistics/quantile_tree.py",
        (
            "a row is in the count of its point and not of its block",
            "return rows * (2 if replaces else 1) * (1 if block == 1 else 2)",
            "return rows * (2 if replaces else 1)",
            "choices",
        ),
    ),
)

_SENSITIVITY = (
    *_of(
        "sensitivity",
        "exact/sensitivity.py",
        (
            "the differences are not closed under negation",
            "        if not directed:\n            normal.update(",
            "        if directed:\n            normal.update(",
            "joint",
        ),
    ),
    *_of(
        "sensitivity",
        "queries/kinds/joint.py",
        (
            "the parts of a tuple move one after the other",
            "        return self._vectors(steps)\n",
            "        return np.unique(np.concatenate([self._vectors(\n"
            "            [own if i == j else own[:1] for j, own in enumerate(steps)]\n"
            "        ) for i in range(len(steps))]))\n",
            "joint",
        ),
    ),
)

_FIXED = (
    *_of(
        "sensitivity",
        "spec/expressions/places.py",
        (
            "a fixed column changes with the attribute",
            "    if column in spec.privacy.fixed and attribute in columns_of(tree):\n",
            "    if column == attribute and attribute in columns_of(tree):\n",
            "banded",
        ),
        (
            "what is seen is chosen by a fixed column",
            "    if fixed:\n        raise SpecError(",
            "    if not fixed:\n        raise SpecError(",
            "chosen",
        ),
    ),
)

_LAWS = (
    *_of(
        "laws",
        "exact/statistics/mechanism.py",
        (
            "a ratio is rounded down and not looked at again",
            "to_integral_value(ROUND_CEILING))\n"
            "    while ratio < RATIO_ONE and not is_private(ratio, spread, epsilon):\n"
            "        ratio += 1\n",
            "to_integral_value(ROUND_CEILING)) - 2**20\n",
            "choices",
        ),
    ),
    *_of(
        "laws",
        "exact/channel.py",
        (
            "rows are suspects only above every ceiling",
            "suspects = (rows > ceilings.min(axis=0)).any(axis=1).tolist()",
            "suspects = (rows > ceilings.max(axis=0)).any(axis=1).tolist()",
            "replaced",
        ),
    ),
    *_of(
        "laws",
        "exact/integers/noise.py",
        (
            "the ratio of two steps stands for that of one",
            "                heavy, light = noise._violated(step, ratio)\n",
            "                heavy, light = noise._violated(step, ratio * ratio)\n",
            "replaced",
        ),
    ),
    *_of(
        "laws",
        "exact/privacy.py",
        (
            "what is light is taken off whole",
            "(heavy - ratio * light) / pmf.total",
            "(heavy - ratio * ratio * light) / pmf.total",
            "rings",
        ),
    ),
    *_of(
        "laws",
        "exact/numbers.py",
        (
            "e to the ε is taken from ten digits, rounded up",
            "low = _exp(epsilon, Context(prec=precision, rounding=ROUND_FLOOR))",
            "low = _exp(epsilon, Context(prec=10, rounding=ROUND_CEILING)) + Decimal('1e-9')",
            "weak",
        ),
    ),
    *_of(
        "laws",
        "exact/statistics/two_categories.py",
        (
            "a swap of two categories is taken for two rows",
            "return cls(least_ratio(epsilon, 1))",
            "return cls(least_ratio(2 * epsilon, 1))",
            "swaps",
        ),
    ),
    *_of(
        "laws",
        "exact/integers/staircase.py",
        (
            "a mixture of the truth is rounded to the truth",
            "half.append((length, -(-weight * share.numerator // share.denominator)))",
            "half.append((length, weight * share.numerator // share.denominator))",
            "replaced",
        ),
    ),
)

_ROUNDING = (
    *_of(
        "rounding",
        "exact/numbers.py",
        (
            "what is rounded up is rounded down",
            "return _decimal_text(-((-value.numerator * 10**places) // value.denominator), places)",
            "return _decimal_text(value.numerator * 10**places // value.denominator, places)",
            "replaced",
        ),
    ),
    *_of(
        "rounding",
        "exact/composition/distribution.py",
        (
            "the ε of a composition is rounded down",
            "return Fraction(ceil(epsilon * 10**PLACES), 10**PLACES)",
            "return Fraction(floor(epsilon * 10**PLACES), 10**PLACES)",
            "exactly",
        ),
    ),
)

_COMPOSITION = (
    *_of(
        "composition",
        "exact/composition/distribution.py",
        (
            "an odd repetition is forgotten",
            "return double.composed(self) if times % 2 else double",
            "return double",
            "exactly",
        ),
        (
            "the infinite loss is that of one",
            "infinite = self.infinite * (other_finite + other.infinite) + finite * other.infinite",
            "infinite = self.infinite * other.infinite + finite * other.infinite",
            "weak",
        ),
    ),
    *_of(
        "composition",
        "budget/composed.py",
        (
            "equal queries count once",
            "        equal = Counter(self.profiles)\n",
            "        equal = Counter(set(self.profiles))\n",
            "exactly",
        ),
        (
            "the δ at which ε is read is not stated",
            "return basic if epsilon is None or epsilon >= basic.epsilon "
            "else Spent(epsilon, delta)",
            "return basic if epsilon is None or epsilon >= basic.epsilon "
            "else Spent(epsilon, basic.delta)",
            "exactly",
        ),
    ),
    *_of(
        "composition",
        "budget/profiles.py",
        (
            "of a pattern the first cell counts",
            "        if len(pattern) == 1:\n            profiles.append(cells[pattern[0]])",
            "        if pattern:\n            profiles.append(cells[pattern[0]])",
            "exactly",
        ),
        (
            "equal cells of a pattern count once",
            "times = sorted(Counter(pattern).items())",
            "times = sorted(Counter(set(pattern)).items())",
            "exactly",
        ),
    ),
)

_PROFILES = (
    *_of(
        "profiles",
        "budget/patterns.py",
        (
            "the patterns of a replaced unit are those of a new one",
            "    if spec_file.spec.privacy.neighbors is Relation.ADD_REMOVE or free == 1:\n",
            "    if spec_file.spec.privacy.neighbors is Relation.ADD_REMOVE or free:\n",
            "exactly",
        ),
    ),
    *_of(
        "profiles",
        "exact/integers/profile.py",
        (
            "a profile is that of the nearest neighbors",
            "tried = [max(distances)] if noise.is_unimodal() else sorted(set(distances))",
            "tried = [min(distances)] if noise.is_unimodal() else sorted(set(distances))",
            "exactly",
        ),
    ),
    *_of(
        "profiles",
        "exact/composition/profile.py",
        (
            "of two profiles the smaller one is taken",
            "tuple(map(max, zip(*curves, strict=True)))",
            "tuple(map(min, zip(*curves, strict=True)))",
            "together",
        ),
    ),
)

_KEYS = (
    *_files(
        "key sets",
        "spec/key_sets.py",
        (
            "keys are published as listed",
            "return tuple(sorted(values, key=int) if is_number else sorted(values))",
            "return tuple(values)",
            "unsorted",
        ),
    ),
    *_files(
        "key sets",
        "queries/profiles.py",
        (
            "the last key is left out",
            "keys = tuple(product(*(spec_file.keys[column] for column in query.by)))",
            "keys = tuple(product(*(spec_file.keys[by][:-1] for by in query.by)))",
            "simple",
        ),
    ),
    *_files(
        "key sets",
        "bundle/write.py",
        (
            "the key columns are published in another order",
            "data = released_bytes(spec.release.id, query, kinds, keys, outcomes, near)",
            "keys = [k[::-1] for k in keys]\n        "
            "data = released_bytes(spec.release.id, query, kinds, keys, outcomes, near)",
            "replaced",
        ),
    ),
    *_files(
        "key sets",
        "bundle/tables/answers.py",
        (
            "the labels are those of the next code",
            "[part.labels[code] for code in codes.tolist()]",
            "[part.labels[code] for code in ((codes + 1) % part.size).tolist()]",
            "simple",
        ),
    ),
)

_RECORD = (
    *_of(
        "record",
        "bundle/prepared.py",
        (
            "a mechanism that depends on the table is published",
            "if query.is_empirical:",
            "if not query.source:",
            "mixed",
        ),
    ),
    *_of(
        "record",
        "bundle/write.py",
        (
            "the guarantee is stated without δ",
            "charged.epsilon, charged.delta)",
            "charged.epsilon, 0 * charged.delta)",
            "replaced",
        ),
        (
            "ε of a cell is that of the whole query",
            "        epsilon=claimed.epsilon,\n",
            "        epsilon=charge.epsilon,\n",
            "replaced",
        ),
    ),
    *_of(
        "record",
        "bundle/files/asked.py",
        (
            "the rows of a unit are the default of the form",
            "max_rows_per_unit=privacy.max_rows_per_unit,",
            "max_rows_per_unit=1,",
            "replaced",
        ),
        (
            "fixed columns are not named",
            "        fixed=list(privacy.fixed) or None,\n",
            "        fixed=None,\n",
            "moved",
        ),
    ),
    *_files(
        "record",
        "bundle/write.py",
        (
            "the cells of a query are its key columns",
            "        cells=cells,\n",
            "        cells=max(1, len(prepared.query.by)),\n",
            "replaced",
        ),
    ),
)

_DATES = (
    *_files(
        "dates",
        "bundle/write.py",
        (
            "day and month change places",
            "day = prepared.of.day.isoformat()",
            'day = prepared.of.day.strftime("%Y-%d-%m")',
            "simple",
        ),
        (
            "the day is written as in the country of the curator",
            "day = prepared.of.day.isoformat()",
            'day = prepared.of.day.strftime("%d.%m.%Y")',
            "simple",
        ),
    ),
    *_of(
        "dates",
        "budget/rules/accounts.py",
        (
            "a month is the same in every year",
            "prefix = entry.date[: PERIODS[period.every]]",
            "prefix = entry.date[5 : PERIODS[period.every]]",
            "monthly",
        ),
    ),
)

_LEDGER = (
    *_of(
        "ledger",
        "budget/rules/accounts.py",
        (
            "a charge is compared with the cap by itself",
            "            if before + more > bound:\n",
            "            if more > bound:\n",
            "twice",
        ),
        (
            "a cap on δ is not looked at",
            '        for name in ("epsilon", "delta"):\n            before, more',
            '        for name in ("epsilon",):\n            before, more',
            "twice",
        ),
        (
            "what was spent is what was spent last",
            "            self._sums[entry.date[:length]] += charge\n",
            "            self._sums[entry.date[:length]] = charge\n",
            "thrice",
        ),
    ),
    *_of(
        "ledger",
        "budget/state.py",
        (
            "a commit gives its charge back",
            "            del self.running[entry.release_id]\n",
            "            done = self.running.pop(entry.release_id)\n"
            "            self.accounts[done.scope].refund(done)\n",
            "twice",
        ),
    ),
    *_of(
        "ledger",
        "budget/composed.py",
        (
            "a release hands its ε alone to the ledger",
            "        return ReleaseCharge.of(epsilon, delta)\n",
            "        return ReleaseCharge.of(epsilon, Fraction(0))\n",
            "ledger",
        ),
        (
            "a release hands one query to the ledger",
            "    if not has_profile:\n        return ReleaseCharge(epsilon, delta, None)",
            "    if not has_profile:\n        return ReleaseCharge(epsilon / 2, delta, None)",
            "committed",
        ),
    ),
    *_files(
        "ledger",
        "dp_release_verify/merkle.py",
        (
            "the path to a leaf begins at the root",
            "return path[::-1]",
            "return path",
            "years",
        ),
        (
            "leaves are hashed as nodes are",
            'hashlib.sha256(b"\\x00" + data)',
            'hashlib.sha256(b"\\x01" + data)',
            "ledger",
        ),
    ),
    *_files(
        "ledger",
        "records/signing.py",
        (
            "the sums are signed without the word before them",
            "signer.sign(SUMS_WORD + sums)",
            "signer.sign(sums)",
            "ledger",
        ),
    ),
    *_files(
        "ledger",
        "bundle/publish.py",
        (
            "the ledger commits the first file alone",
            "commit(self.release_id, sums, today()",
            "commit(self.release_id, sums[:64], today()",
            "ledger",
        ),
    ),
)

_COMMITMENTS = (
    *_files(
        "commitments",
        "dp_release_verify/digests.py",
        (
            "a commitment is a hash without its key",
            "code = hmac.new(key, digestmod=hashlib.sha256)",
            "code = hashlib.sha256()",
            "mixed",
        ),
    ),
    Planted(
        "the key of every commitment is zero",
        "commitments",
        "bundle/prepared.py",
        "key = secrets.token_bytes(32)",
        "key = bytes(32)",
        ("mixed",),
        seen_by=SeenBy.NOBODY,
    ),
)

_TABULATIONS = (
    *_files(
        "tabulations",
        "bundle/write.py",
        (
            "codes are published as counts",
            "counts = (noisy + CENTER).reshape(-1, cells)",
            "counts = noisy.reshape(-1, cells)",
            "tabulated",
        ),
    ),
    *_files(
        "tabulations",
        "tabulations/files/numbers.py",
        (
            "whole numbers stand for the estimates",
            "    return MarginNumbers(\n        answer, counts,",
            "    return MarginNumbers(\n        counts * MILLION, counts,",
            "tabulated",
        ),
        (
            "intervals end one too early",
            "last = np.maximum((floors + reach) // scale, 0)",
            "last = np.maximum((floors + reach) // scale - 1, 0)",
            "tabulated",
        ),
    ),
)

_READ = (
    *_audit(
        "queries/registry.py",
        (
            "declared differences do not bound the rows",
            "    if not isinstance(query.sensitivity, DeclaredSensitivity):\n"
            "        return most\n    allowed",
            "    if not isinstance(query.sensitivity, DeclaredSensitivity) or most:\n"
            "        return most\n    allowed",
            "declared",
        ),
    ),
    *_audit(
        "queries/sensitivity.py",
        (
            "an answer that no neighbor changes gets no least step",
            "distances=tuple(sorted({1, *(observed.distances or ())})))",
            "distances=tuple(sorted(observed.distances or ())))",
            "far",
        ),
    ),
    *_audit(
        "tables/kept.py",
        (
            "one row more of a unit is read",
            'f\'OVER (PARTITION BY "#unit" ORDER BY "#rank") <= {most})\'',
            'f\'OVER (PARTITION BY "#unit" ORDER BY "#rank") <= {most + 1})\'',
            "crowded",
        ),
        (
            "the bound on rows is for each cell",
            'f\'OVER (PARTITION BY "#unit" ORDER BY "#rank") <= {most})\'',
            'f\'OVER (PARTITION BY "#unit", "#free" ORDER BY "#rank") <= {most})\'',
            "bounded",
        ),
    ),
    *_audit(
        "queries/profiles.py",
        (
            "the bound on cells is not enforced",
            "most >= len(cells_of(self.spec_file, self.query).free_parts):\n",
            "most <= len(cells_of(self.spec_file, self.query).free_parts):\n",
            "crowded",
        ),
        (
            "a unit has a place in each of its fixed parts",
            "        if homes <= 1:\n            return source\n",
            "        if homes >= 0:\n            return source\n",
            "moved",
        ),
    ),
    *_audit(
        "queries/kinds/count.py",
        (
            "a unit counts once for each of its rows",
            "'max(\"#value\")'",
            "'count(*)'",
            "crowded",
        ),
    ),
    *_audit(
        "queries/kinds/binned.py",
        (
            "values are clamped from above only",
            'return f"greatest(least({identifier(self.query.of)}, {high}), {low})"',
            'return f"least({identifier(self.query.of)}, {high})"',
            "wild",
        ),
        (
            "values are not clamped",
            'return f"greatest(least({identifier(self.query.of)}, {high}), {low})"',
            'return f"{identifier(self.query.of)}"',
            "wild",
        ),
        (
            "a missing value counts as the upper bound",
            '        return f"{identifier(self.query.of)} IS NOT NULL"\n',
            '        return "true"\n',
            "wild",
        ),
    ),
    *_audit(
        "queries/kinds/mode.py",
        (
            "rows stand for the units of a category",
            "return 'max(\"#value\")' if self.query.counts_units else 'sum(\"#value\")'",
            "return 'sum(\"#value\")'",
            "crowded",
        ),
    ),
    *_audit(
        "tabulations/measure/measuring.py",
        (
            "every row of a unit is tabulated",
            'f"row_number() OVER (PARTITION BY rows.{unit} ORDER BY {rank}) = 1"',
            'f"row_number() OVER (PARTITION BY rows.{unit} ORDER BY {rank}) >= 1"',
            "tabulated",
        ),
    ),
    *_audit(
        "queries/sensitivity.py",
        (
            "nobody leaves who is replaced",
            "leaving = nobody if add_remove else members",
            "leaving = nobody",
            "mixed",
        ),
    ),
    *_audit(
        "tables/normal.py",
        (
            "rows without a unit are rows of one unit",
            '    return f"FROM ({selected}) WHERE {identifier(unit)} IS NOT NULL"\n',
            "    return selected\n",
            "numbered",
        ),
    ),
)

_DRAWN = (
    *_audit(
        "exact/sampling.py",
        (
            "the code before the drawn one is taken",
            'drawn[here] = np.searchsorted(cumulative, uniform[here], side="right")',
            "drawn[here] = np.maximum(np.searchsorted(cumulative, uniform[here]) - 1, 0)",
            "many",
        ),
        (
            "every cell has the same word",
            'words = np.frombuffer(source(8 * count), dtype="<u8").astype(np.uint64)',
            'words = np.full(count, np.frombuffer(source(8), dtype="<u8")[0], dtype=np.uint64)',
            "many",
        ),
        (
            "one bit of each word is dropped",
            "return words >> np.uint64(_WORD_BITS - bits)",
            "return (words >> np.uint64(_WORD_BITS - bits + 1)) << np.uint64(1 if bits > 1 else 0)",
            "many",
        ),
        (
            "the largest digit of a geometric number is dropped",
            "                part += is_one.astype(np.int64) << digit\n",
            "                part += is_one.astype(np.int64) << min(digit, 1)\n",
            "many",
        ),
    ),
    *_audit(
        "exact/integers/noise.py",
        (
            "noise ends with its window",
            "        if self.right is not None:\n            noise = _lengthened(",
            "        if self.right is None:\n            noise = _lengthened(",
            "many",
        ),
        (
            "noise falls on one side only",
            "        return np.asarray(noise, dtype=np.int64)\n\n\ndef merged",
            "        return np.abs(np.asarray(noise, dtype=np.int64))\n\n\ndef merged",
            "many",
        ),
    ),
    *_audit(
        "exact/statistics/permute_and_flip.py",
        (
            "the best candidate is drawn",
            "return _uniform_choice((gaps >= 0) & (coins >= gaps), source)",
            "return _uniform_choice((gaps >= 0) & (coins * 0 >= gaps), source)",
            "many",
        ),
    ),
    *_audit(
        "exact/statistics/sums.py",
        (
            "of noisy sums the first one has noise",
            "held = np.clip(statistics, -(REACH - 1), REACH - 1)",
            "held = np.clip(statistics, -(REACH - 1), REACH - 1)\n        noise[1:] = 0",
            "many",
        ),
    ),
    *_unheard(
        "exact/modular.py",
        (
            "modular noise is left out",
            "draw_noise(self.pmf, answers.size, source)",
            "0 * draw_noise(self.pmf, answers.size, source)",
            "nested",
        ),
    ),
    *_unheard(
        "exact/integers/noise.py",
        (
            "noise on the integers is left out",
            "        return np.asarray(noise, dtype=np.int64)\n\n\ndef merged",
            "        return np.zeros(count, dtype=np.int64)\n\n\ndef merged",
            "nested areas",
        ),
    ),
    *_unheard(
        "exact/sampling.py",
        (
            "a true code is taken for a drawn one",
            'drawn[here] = np.searchsorted(cumulative, uniform[here], side="right")',
            "drawn[here] = code",
            "nested",
        ),
    ),
    *_audit(
        "job.py",
        (
            "the source of noise is a fixed seed",
            "self.source: RandomBytes = SYSTEM",
            'self.source: RandomBytes = __import__("random").Random(0).randbytes',
            "many",
        ),
    ),
)

ERRORS = (
    *_CELLS,
    *_CHARGES,
    *_BOUNDS,
    *_SENSITIVITY,
    *_FIXED,
    *_LAWS,
    *_ROUNDING,
    *_COMPOSITION,
    *_PROFILES,
    *_KEYS,
    *_RECORD,
    *_DATES,
    *_LEDGER,
    *_COMMITMENTS,
    *_TABULATIONS,
    *_READ,
    *_DRAWN,
)
"""Every planted error. A change that no longer fits its module is a failed test."""
