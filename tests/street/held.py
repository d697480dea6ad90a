"""What is held against each walk: no fault, no contradiction, answers, errors and intervals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pandas as pd

import release
from tests.street.exactly import exact_answers
from tests.street.found import Failure, Measure, kind_of
from tests.street.specs import Case, Plain, Wish, most_rows
from tests.street.truth import (
    Cell,
    Meant,
    clamp_of,
    labels,
    meant,
    number_of,
    scaled,
    scores,
    tabulated,
)
from tests.street.walk import UNEXPECTED, Said, Walk

MOST_SECONDS = 20.0
# The chance that noise is larger than this many times s/ε is below 1 in 10⁹ a cell.
FAR = 21.0
WORDS = {
    "bound": r"beyond max_|at most \d|bound",
    "unit": r"no unit|without (a )?unit|unit is missing",
    "clamp": r"count as|clamp|above|below",
    "join": r"join",
    "domain": r"domain|beyond|above|count as",
}
NAMED = r"^[a-z_]+(\[\d+\])?(\.[\w.\[\]]+)?: |\b(q\d|both|own|largest|part\d|people)\b"


def faults(walk: Walk) -> Iterator[Failure]:
    """Internal errors, tracebacks, unforeseen statuses, and what takes too long."""
    for verb, said in walk.said.items():
        whole = said.out + said.err
        if verb in ("first plan", "plan text") and is_fault(walk.said["plan"]):
            continue
        if said.status not in (0, 1, 2, 3) or "Traceback" in said.err or "internal error" in whole:
            lines = [line for line in said.err.strip().splitlines() if line.strip()]
            line = said.reason or (lines[-1] if lines else f"status {said.status}")
            yield Failure(f"internal: {verb}: {kind_of(line)}", line)
        elif said.status in (1, 2) and not said.reason and verb in ("plan", "check", "run"):
            yield Failure(f"no reason: {verb}", f"status {said.status}: {said.err.strip()[:200]}")
        if said.seconds > MOST_SECONDS:
            yield Failure(f"slow: {verb}", f"{said.seconds:.0f} s of the processor")
    run = walk.said["run"]
    if (
        run.status in (1, 2)
        and run.reason
        and not is_fault(run)
        and not re.search(NAMED, run.reason)
    ):
        yield Failure(f"names no field: {kind_of(run.reason)}", run.reason)


def is_fault(said: Said) -> bool:
    """Whether a command ended by a fault of its own."""
    return said.status >= UNEXPECTED or "internal error" in said.err or "Traceback" in said.err


def contradictions(walk: Walk) -> Iterator[Failure]:
    """Where plan, check and run do not say the same of refusal and charge."""
    run = walk.said["run"]
    if is_fault(run):
        return
    # A release that its own run does not accept is told by verify.
    for verb in ("plan", "check") if not (run.status and walk.is_published) else ():
        said = walk.said[verb]
        if is_fault(said):
            continue
        if bool(said.status) != bool(run.status):
            reason = run.reason or said.reason
            words = f"{verb} ends with {said.status}, run with {run.status}"
            yield Failure(f"disagree: {words}: {kind_of(reason)}", f"{words}: {reason}")
        elif said.status != run.status:
            words = f"{verb} ends with {said.status}, run with {run.status}"
            yield Failure(f"statuses differ: {words}", f"{words}: {run.reason}")
        elif run.reason and run.reason not in said.words:
            line = f"{verb}: {said.reason} | run: {run.reason}"
            yield Failure(f"reasons differ: {verb}: {kind_of(run.reason)}", line)
    planned = walk.said["plan"].json
    if walk.is_published and "epsilon" in planned:
        record = json.loads((walk.public / "release.json").read_text("utf-8"))
        for name in ("epsilon", "delta"):
            said_of, paid = str(planned[name]), str(record["made"]["total"][name])
            if Fraction(said_of) != Fraction(paid):
                yield Failure(f"charge differs: {name}", f"plan {said_of}, release.json {paid}")


def unpublished(walk: Walk) -> Iterator[Failure]:
    """Charges without a release, refusals that leave one, releases that are not accepted."""
    run = walk.said["run"]
    if run.status == 0 and not walk.is_published:
        yield Failure("no release", "run ends with 0, and there is no release")
    if run.status and walk.is_published:
        yield Failure("release of a refused run", run.reason)
    verified = walk.said.get("verify")
    if verified is not None and verified.status:
        line = verified.reason or verified.out.strip().splitlines()[-1]
        yield Failure(f"verify ends with {verified.status}: {kind_of(line)}", line)
    shown = walk.said.get("show")
    if shown is not None and not walk.is_published:
        spent = [scope["spent"]["epsilon"] for scope in shown.json.get("scopes", ())]
        if any(Fraction(epsilon) > 0 for epsilon in spent):
            yield Failure("charged without a release", f"spent ε {spent}: {run.reason}")


def shares(walk: Walk) -> Iterator[Failure]:
    """Shares that are worse than adding up, or leave budget without a word."""
    if "plan text" not in walk.said or walk.said["plan"].status:
        return
    planned, text = walk.said["plan"].json, walk.said["plan text"].out
    for noise in planned["together"]["noise"]:
        is_epsilon = noise["measure"].startswith("ε")
        added, found = noise["added"], noise["exact"]
        if added is None or found is None:
            continue
        is_worse = found < added * 0.98 if is_epsilon else found > added * 1.02
        if is_worse:
            line = f"{noise['queries']}: {noise['measure']} {found:.4g}, added up {added:.4g}"
            yield Failure("share: worse than adding up", line)
    hand = walk.said["by hand"].json
    for name, reach in reaches(planned).items():
        added = reaches(hand).get(name)
        if added is not None and reach > 1.1 * added + 1:
            line = f"{name}: errs by {reach:.4g} with a share, by {added:.4g} added up by hand"
            yield Failure("share: worse than by hand", line)
    budget = walk.case.spec["budget"]
    used = Fraction(planned["epsilon"]) / Fraction(budget["epsilon"])
    if used < Fraction(95, 100) and not re.search(r"unused|not used|uses [\d.]+ % of", text):
        spent = f"ε {planned['epsilon']} of {budget['epsilon']}"
        line = f"{spent}, δ {planned['delta']} of {budget['delta']}"
        yield Failure("share: leaves budget without a word", line)


def reaches(planned: Plain) -> dict[str, float]:
    """How far an answer may be off by a plan, of each query: an error, a lead or a rank."""
    found = {}
    for query in planned.get("queries", ()):
        for each in query["candidates"]:
            if each["mechanism"] == query["mechanism"]:
                found[query["name"]] = float(each["mean_absolute"])
    for query in planned.get("on_statistic", ()):
        points = query["points"]
        if query["figure"].startswith("error"):
            # Of a mean: the error by the number of rows; in proportion to one over them.
            found[query["name"]] = float(points[-1][0] * points[-1][1])
            continue
        likely = [reach for reach, chance in points if chance >= 0.9]
        if likely:
            found[query["name"]] = float(likely[0])
    return found


def spread_of(case: Case, wish: Wish) -> float:
    """By how much one unit may move what the noise is added to, at most."""
    rows = most_rows(wish.query, case.privacy)
    ways = 1 if case.is_one_way else 2
    if wish.kind == "count":
        return float(1 if "of" in wish.query else rows)
    if wish.kind in ("sum", "mean"):
        low, high = clamp_of(wish.query)
        most = high - low if wish.kind == "mean" else max(high, 0) - min(low, 0)
        return float(rows * most * ways)
    if wish.kind in ("mode", "top"):
        weight = max(map(abs, wish.query["clamp"])) if "weight" in wish.query else 1
        return float(rows * weight * ways)
    return float(2 * rows * ways)


def is_near(wish: Wish) -> bool:
    """Whether a large ε brings the published answer near the true one, by the pages."""
    if "guarantee" not in wish.query or wish.query["guarantee"].get("least"):
        return False
    return wish.kind == "count" or wish.is_on_statistic


def said_of(walk: Walk, wish: Wish) -> str:
    """What check says of a query and of the tables."""
    lines = walk.said["check"].out.splitlines()
    names = {f"{other.name}:" for other in walk.case.wishes if other.name != wish.name}
    kept, is_own = [], True
    for line in lines:
        if not line.startswith(" "):
            is_own = not any(line.startswith(name) for name in names)
        if is_own:
            kept.append(line)
    return "\n".join(kept)


def explained(walk: Walk, wish: Wish, why: set[str]) -> bool:
    """Whether check says what an answer differs by."""
    text = said_of(walk, wish)
    return any(re.search(WORDS[reason], text) for reason in why)


def cell_rows(frame: pd.DataFrame, by: Sequence[str]) -> dict[Cell, Plain]:
    """The published rows by their keys."""
    records = frame.to_dict("records")
    return {tuple(str(row[column]) for column in by): row for row in records}


def answers(walk: Walk) -> Iterator[Failure | Measure]:
    """Published answers beside those of the table."""
    if not walk.is_published:
        return
    opened = release.open(walk.public)
    for wish in walk.case.wishes:
        if not wish.is_published or wish.kind in ("tuple", "sql", "per_unit"):
            continue
        published = cell_rows(opened[wish.name].to_pandas(), wish.by)
        rows = meant(walk.case, wish)
        if set(published) != set(rows.asked):
            line = f"{wish.name}: {len(published)} cells, {len(rows.asked)} asked"
            yield Failure(f"cells differ: {wish.kind}", line)
            continue
        if walk.case.is_large and is_near(wish):
            yield from far_off(walk, wish, rows, published)
        if not rows.is_bounded and wish.kind in ("count", "sum", "mean"):
            yield from pooled(walk, wish, rows, published)
        if not rows.is_bounded and wish.query.get("histogram"):
            yield from histogram_intervals(walk, wish, rows, opened[wish.name].histogram())


def far_off(walk: Walk, wish: Wish, rows: Meant, published: dict[Cell, Plain]) -> Iterator[Failure]:
    """Answers at a large ε that are not those of the question, unless check says why."""
    case = walk.case
    epsilon = float(Fraction(wish.query["guarantee"]["epsilon"]))
    noise = spread_of(case, wish) * (1 + FAR / epsilon)
    why = set(rows.why)
    worst = ""
    for cell, row in published.items():
        words, is_out = misses(case, wish, rows.asked[cell], row, noise)
        if not words:
            continue
        if is_out:
            why.add("domain")
        worst = worst or f"{wish.name} {cell}: {words}"
    if worst and not explained(walk, wish, why):
        said = "unexplained" if not why else "check is silent about " + ", ".join(sorted(why))
        yield Failure(f"answer: {wish.kind}: {said}", worst)


def misses(
    case: Case, wish: Wish, asked: pd.DataFrame, row: Plain, noise: float
) -> tuple[str, bool]:
    """By what an answer misses the question, if by more than noise; whether it is out of range."""
    if wish.kind in ("mode", "top"):
        found = scores(case, wish, asked, is_read=False)
        return lead_missed(wish, found, row, 2 * noise), False
    if wish.kind in ("median", "min", "max", "quantiles"):
        return rank_missed(wish, asked, row, 2 * noise), False
    truth = number_of(case, wish, asked, is_read=False)
    if truth is None:
        return "", False
    answer, room = float(row["answer"]), noise
    if wish.kind == "mean":
        if len(asked) * 2 * (clamp_of(wish.query)[1] - clamp_of(wish.query)[0]) < 10 * noise:
            return "", False
        room = 4 * noise / len(asked) + step_of(wish.query)
    elif wish.kind == "sum":
        answer = float(row["noisy_sum"] if "noisy_sum" in row else row["answer"])
    if abs(answer - truth) <= room + 1e-6:
        return "", False
    is_out = (
        "ordered" in wish.query.get("domain", {}) and truth > wish.query["domain"]["ordered"]["max"]
    )
    return f"answer {answer:g}, asked {truth:g}, noise up to {room:.3g}", is_out


def step_of(query: Plain) -> float:
    """The width of a bin, or the step of a grid."""
    if "grid" in query:
        return float(query["grid"]["step"])
    bins = query["bins"]
    return float((bins["high"] - bins["low"]) / bins["count"] + 1)


def lead_missed(wish: Wish, found: dict[Any, float], row: Plain, noise: float) -> str:
    """Whether a category was published that others lead by more than noise."""
    ranked = sorted(found.values(), reverse=True)
    k = wish.query.get("k", 1)
    room = noise * (1 + log(len(found)) / FAR)
    for number in range(1, k + 1):
        answer = row["answer"] if wish.kind == "mode" else row[f"answer_{number}"]
        label = answer if answer in found else int(answer)
        if found[label] < ranked[k - 1] - room - 1e-6:
            return f"{label} with {found[label]:g} is published, place {k} has {ranked[k - 1]:g}"
    return ""


def wanted_ranks(wish: Wish, many: int) -> list[tuple[str, float]]:
    """The columns of the answers, and the rank that each is to have, in rows from below."""
    if wish.kind == "median":
        return [("answer", many / 2)]
    if wish.kind == "min":
        return [("answer", wish.query["rank"] - 0.5)]
    if wish.kind == "max":
        return [("answer", many - wish.query["rank"] + 0.5)]
    at = wish.query["at"]
    names = ["answer_" + share.replace(".", "_").replace("/", "_") for share in at]
    columns = names if len(at) > 1 else ["answer"]
    ranks = [float(Fraction(share)) * many for share in at]
    return list(zip(columns, ranks, strict=True))


def rank_missed(wish: Wish, asked: pd.DataFrame, row: Plain, noise: float) -> str:
    """Whether an answer is further from its rank than noise, in rows."""
    values = np.clip(scaled({}, asked[wish.query["of"]]), *clamp_of(wish.query))
    if len(values) < wish.query.get("rank", 1):
        return ""
    edges = answer_edges(wish.query)
    room = noise * (1 + log(len(edges)) / FAR)
    for column, rank in wanted_ranks(wish, len(values)):
        low = float(row[column])
        # The last bin holds its upper end too.
        above = [edge for edge in edges if edge > low]
        high = min(above) if above else np.inf
        below, upto = float((values < low).sum()), float((values < high).sum())
        if rank < below - room or rank > upto + room:
            return f"{column} {low:g} has ranks {below:g} to {upto:g}, wanted {rank:g}"
    return ""


def answer_edges(query: Plain) -> list[int]:
    """The least integer of each possible answer."""
    if "bins" in query:
        low, high, count = (query["bins"][name] for name in ("low", "high", "count"))
        return [low - (-number * (high - low) // count) for number in range(count)]
    return list(map(int, labels(query)))


def pooled(walk: Walk, wish: Wish, rows: Meant, published: dict[Cell, Plain]) -> Iterator[Measure]:
    """Intervals and errors of the answers of the rows that were read."""
    held = cells = 0
    errors = []
    for cell, row in published.items():
        truth = number_of(walk.case, wish, rows.read[cell], is_read=True)
        if truth is None or not in_range(wish.query, truth):
            continue
        if "low" in row:
            cells += 1
            held += bool(row["low"] - 1e-9 <= truth <= row["high"] + 1e-9)
        noisy = row.get("noisy_sum") if wish.kind == "sum" else row["answer"]
        if noisy is not None:
            errors.append(abs(float(noisy) - truth))
    noise = "statistic" if wish.is_on_statistic else "answer"
    if cells:
        yield Measure(f"interval: {wish.kind}, noise on {noise}", cells, held, 0.94 * cells, 0)
    yield from error_measures(walk, wish, errors)


def in_range(query: Plain, truth: float) -> bool:
    """Whether an answer lies between the ends of its bins or grid."""
    ends = query.get("bins", query.get("grid"))
    return ends is None or bool(ends["low"] <= truth <= ends["high"])


def error_measures(walk: Walk, wish: Wish, errors: list[float]) -> Iterator[Measure]:
    """Mean errors of counts, and the share of sums within a planned distance."""
    planned = walk.said["plan"].json
    if not errors:
        return
    if wish.kind == "count" and "integers" in wish.query["domain"]:
        for query in planned.get("queries", ()):
            chosen = [
                each for each in query["candidates"] if each["mechanism"] == query["mechanism"]
            ]
            if query["name"] != wish.name or not chosen:
                continue
            mean = float(chosen[0]["mean_absolute"])
            steps = spread_of(walk.case, wish)
            variance = len(errors) * (2 * mean**2 + mean * (2 * steps + 1))
            yield Measure("error: count", len(errors), sum(errors), len(errors) * mean, variance)
    if wish.kind == "sum" and wish.is_on_statistic:
        for query in planned.get("on_statistic", ()):
            points = [(x, p) for x, p in query["points"] if p >= 0.8]
            if query["name"] != wish.name or not points:
                continue
            reach, chance = points[0]
            within = sum(error <= reach for error in errors)
            variance = len(errors) * max(chance * (1 - chance), 0.01)
            yield Measure("error: sum", len(errors), within, len(errors) * chance, variance)


def histogram_intervals(
    walk: Walk, wish: Wish, rows: Meant, histogram: pd.DataFrame
) -> Iterator[Measure]:
    """The intervals of all counts of a histogram."""
    held = 0
    for row in histogram.to_dict("records"):
        cell = tuple(str(row[column]) for column in wish.by)
        found = scores(walk.case, wish, rows.read[cell], is_read=True)
        by_text = {str(label): score for label, score in found.items()}
        truth = by_text[str(row[wish.query["of"]])]
        held += bool(row["low"] <= truth <= row["high"])
    yield Measure("interval: histogram of a top", len(histogram), held, 0.94 * len(histogram), 0)


def own_answers(walk: Walk) -> Iterator[Failure]:
    """Each unit's own category at a large ε, where a unit has one row."""
    if not walk.is_published or not walk.case.is_large:
        return
    opened = release.open(walk.public)
    for wish in walk.case.wishes:
        if wish.kind != "per_unit":
            continue
        rows = meant(walk.case, wish)
        if rows.is_bounded:
            continue
        wrong = 0
        for cell, row in cell_rows(opened[wish.name].to_pandas(), wish.by).items():
            truth = rows.read[cell][wish.query["of"]].tolist()
            wrong += bool(truth) and row["answer"] != truth[0]
        if wrong > 2:
            yield Failure("answer: per_unit", f"{wish.name}: {wrong} units have another category")


def tables(walk: Walk) -> Iterator[Failure | Measure]:
    """The tables of tabulations: whole numbers that add up, answers and intervals."""
    if not walk.is_published or "tabulations" not in walk.case.spec:
        return
    opened = release.open(walk.public)
    for level, published in walk.case.spec["tabulations"][0]["publish"].items():
        for margin in published:
            table = opened.table(level, margin)
            frame = table.to_pandas() if hasattr(table, "to_pandas") else table
            truths = tabulated(walk.case, level, margin)
            levels = ["region"] if level == "region" else ["region", "place"]
            names = [name for name in (*levels, *margin) if name in frame.columns]
            held, squares, cells = 0, 0.0, 0
            for row in frame.to_dict("records"):
                cell = tuple(str(row[name]) for name in names)
                truth = near_cell(truths, cell, levels, names)
                held += bool(row["low"] <= truth <= row["high"])
                # Less noise than that is mostly 0, and now and then far more than its deviation.
                if row["standard_error"] > 0.5:
                    squares += ((row["answer"] - truth) / row["standard_error"]) ** 2
                    cells += 1
            total = sum(truths.values())
            if walk.case.is_large and abs(float(frame["answer"].sum()) - total) > 5 + total / 20:
                yield Failure(
                    "answer: tabulation", f"{level} {margin}: {frame['answer'].sum()}, {total}"
                )
            yield Measure("interval: tabulation", len(frame), held, 0.94 * len(frame), 0)
            yield Measure("error: tabulation", cells, squares, cells, 25.0 * cells)


def near_cell(truths: Any, cell: Cell, levels: list[str], names: list[str]) -> int:
    """The count of a cell, also where a table names the lowest level alone."""
    missing = [level for level in levels if level not in names]
    if not missing:
        return int(truths[cell])
    return int(sum(count for key, count in truths.items() if key[len(missing) :] == cell))


def held_against(walk: Walk) -> list[Failure | Measure]:
    """All that is found in a walk."""
    found: list[Failure | Measure] = [*faults(walk), *contradictions(walk), *unpublished(walk)]
    for look in (shares, answers, exact_answers, own_answers, tables):
        found += look(walk)
    return found
