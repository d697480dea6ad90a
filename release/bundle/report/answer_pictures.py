"""The picture of a query's answers, and what it shows in words.

Which picture is drawn follows from the answers: a row for each of a few cells, fields for two keys,
a curve through the answers of many cells, clocks for answers on a circle, bars for categories. All
values are in the unit of the table beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from release.bundle.report.answers import AnswerColumn
from release.bundle.report.charts import (
    NARROW,
    SOLID,
    Axis,
    Chart,
    Entry,
    covering_axis,
    name_axis,
    number_axis,
)
from release.bundle.report.conditions import listed
from release.bundle.report.pictures import BLUE, PALE, by_number, heat_map_svg
from release.bundle.report.round_charts import Face, clocks_svg, rose_svg
from release.exact.domain import Topology
from release.spec.query import spoken

_MOST_ROWS, _MOST_FIELDS, _MOST_CLOCKS, _MOST_BARS = 60, 40, 24, 40
"""Cells drawn as rows; keys on a side of a map; clocks; categories drawn as bars."""

_LONGEST = 18
"""Characters of a label beside a narrow picture."""

_MOST_PLACES = 240
"""Places of a curve through many answers."""

_TOLD = 8
"""Cells whose answers are told one by one in words."""


@dataclass(frozen=True)
class Picture:
    """A picture, its description with figures, and its caption."""

    svg: str
    words: str
    caption: str


def pictures_of(
    name: str, by: Sequence[str], keys: Sequence[tuple[str, ...]], answers: Sequence[AnswerColumn]
) -> list[Picture]:
    """The pictures of the answers of a query, at most one a column; none without cells."""
    if not keys:
        return []
    # Pictures of more cells show none by its key, and to order them takes long.
    if len(keys) <= _MOST_FIELDS**2:
        order = in_order(keys)
        keys = [keys[place] for place in order]
        # Keys and answers move together: a picture with other answers beside a key would be a lie.
        answers = [answer.taken(order) for answer in answers]
    if len(answers) > 1 and len(keys) <= _MOST_ROWS and _share_one_axis(answers):
        return [_quantiles(name, keys, answers)]
    drawn = []
    for place, answer in enumerate(answers):
        own = name if len(answers) == 1 else f"{name}-{place}"
        picture = _picture(own, by, keys, answer)
        if picture is not None:
            drawn.append(picture)
    return drawn


def in_order(keys: Sequence[tuple[str, ...]]) -> list[int]:
    """The places of keys as people order them: 2 before 10.

    Tables are in the order of their files, which is that of the characters.
    """
    numbered = [tuple(map(by_number, key)) for key in keys]
    return sorted(range(len(keys)), key=lambda place: numbered[place])


def _picture(
    name: str, by: Sequence[str], keys: Sequence[tuple[str, ...]], answer: AnswerColumn
) -> Picture | None:
    topology = answer.part.answers.topology
    if topology is Topology.NOMINAL:
        return _categories(name, answer) if len(keys) > 1 else None
    if topology is Topology.CYCLIC and answer.part.answers.size <= 366:
        return _round(keys, answer)
    values = _Values.of(answer)
    if len(keys) <= _MOST_ROWS:
        return _rows(name, keys, answer, values)
    if len(by) == 2:
        sides = [len(set(side)) for side in zip(*keys, strict=True)]
        if min(sides) >= 2 and max(sides) <= _MOST_FIELDS:
            return _fields(name, by, keys, answer)
    return _curve(name, answer, values)


@dataclass(frozen=True)
class _Values:
    """Answers in order as numbers of their unit; bins from where they begin to where they end."""

    first: NDArray[np.float64]
    last: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None

    @classmethod
    def of(cls, answer: AnswerColumn) -> _Values:
        low = high = None
        if answer.interval is not None:
            interval = answer.interval
            if interval.is_number:
                low, high = interval.low.astype(np.float64), interval.high.astype(np.float64)
            else:
                low = _starts(answer, interval.low.astype(np.int64))
                high = _ends(answer, interval.high.astype(np.int64))
        return cls(_starts(answer, answer.codes), _ends(answer, answer.codes), low, high)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest value that is drawn, and 0 where it is not far."""
        ends = [self.first, self.last]
        if self.low is not None and self.high is not None:
            ends += [self.low, self.high]
        together = np.concatenate(ends)
        least, largest = float(together.min()), float(together.max())
        # Lengths are compared at a glance, so the axis begins at 0 unless that hides differences.
        if least > 0 and (least < 0.6 * largest or least == largest):
            least = 0.0
        room = 0.04 * (largest - least) or 1.0
        return (least - room if least else -room / 2), largest + room


def _starts(answer: AnswerColumn, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    return answer.part.answers.numbers(codes)


def _ends(answer: AnswerColumn, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where bins end; other answers end where they begin."""
    domain, edges = answer.part.answers, answer.part.edges()
    if edges is not None:
        return np.array(list(map(float, edges[1:])))[codes]
    labels = domain.labels
    # An answer that is shown as one number is that number, and no bin.
    if isinstance(labels, range) or answer.part.shown_answers([0]) == [str(labels[0])]:
        return _starts(answer, codes)
    # The last bin has no label behind it: it is as wide as the one before.
    following = [*map(float, labels[1:]), 2.0 * float(labels[-1]) - float(labels[-2])]
    return np.array(following)[codes]


def _short(key: tuple[str, ...]) -> str:
    text = ", ".join(key)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _rows(
    name: str, keys: Sequence[tuple[str, ...]], answer: AnswerColumn, values: _Values
) -> Picture:
    """A row for each cell: the answer, and a bar over its interval."""
    last = len(keys) - 1
    across = covering_axis(*values.span, answer.unit, most=4)
    chart = Chart(f"answers-{name}", 18.0 * len(keys), (across, _key_axis(keys)), width=NARROW)
    if values.low is not None and values.high is not None:
        for place, (low, high) in enumerate(zip(values.low, values.high, strict=True)):
            row = last - place
            chart.line([(low, row), (high, row)], BLUE, SOLID, 1.6)
            for end in (low, high):
                chart.line([(end, row - 0.22), (end, row + 0.22)], BLUE, SOLID, 1.6)
    dots, boxes = [], []
    for place, (first, end) in enumerate(zip(values.first, values.last, strict=True)):
        if first == end:
            dots.append((float(first), float(last - place)))
        else:
            boxes.append((float(first), float(end), last - place - 0.28, last - place + 0.28))
    chart.boxes(boxes, BLUE)
    chart.dots(dots, BLUE)
    caption = "Boxes are" if boxes else "Dots are"
    caption += f" the published answers{f', in {answer.unit}' if answer.unit else ''}."
    return Picture(chart.svg(), _told(keys, answer), _titled(answer, caption + _bars(answer)))


def _key_axis(keys: Sequence[tuple[str, ...]]) -> Axis:
    """A row for each key, the first one at the top, where an axis has its largest number."""
    last = len(keys) - 1
    ticks = tuple((float(last - place), _short(key)) for place, key in enumerate(keys))
    return Axis(-0.6, last + 0.6, ticks)


def _share_one_axis(answers: Sequence[AnswerColumn]) -> bool:
    """Whether all columns answer one query in order, as quantiles do."""
    part = answers[0].part
    # By identity: parts of a tuple may be equal in every field and still be of other things.
    for answer in answers:
        if answer.part is not part:
            return False
    return part.answers.topology is Topology.ORDERED


def _quantiles(
    name: str, keys: Sequence[tuple[str, ...]], answers: Sequence[AnswerColumn]
) -> Picture:
    """A row for each cell: its quantiles, and a line from the first to the last."""
    last = len(keys) - 1
    # Of a bin its middle, so that a row has one dot for each quantile.
    middles, is_binned = [], False
    for answer in answers:
        values = _Values.of(answer)
        is_binned = is_binned or bool((values.first < values.last).any())
        middles.append((values.first + values.last) / 2)
    whole = np.concatenate(middles)
    span = _Values(whole, whole, None, None).span
    unit = answers[0].unit
    axes = covering_axis(*span, unit, most=4), _key_axis(keys)
    chart = Chart(f"answers-{name}", 18.0 * len(keys), axes, width=NARROW)
    sentences = []
    for place, key in enumerate(keys):
        points, texts = [], []
        for middle, answer in zip(middles, answers, strict=True):
            points.append((float(middle[place]), float(last - place)))
            texts.append(answer.texts[place])
        chart.line([points[0], points[-1]], PALE, SOLID, 5)
        chart.dots(points, BLUE)
        sentences.append(f"{', '.join(key)}: {', '.join(texts)}" if key else ", ".join(texts))
    heads = listed(answer.head.removesuffix(" quantile") for answer in answers)
    summary = "; ".join(sentences[:_TOLD])
    rest = " The table below has all." if len(sentences) > _TOLD else ""
    words = f"The {heads} quantiles{f', in {unit}' if unit else ''}. {summary}.{rest}"
    caption = f"Dots are the {heads} quantiles as published"
    caption += ", each at the middle of its bin" if is_binned else ""
    return Picture(chart.svg(), words, f"{caption}{f', in {unit}' if unit else ''}.")


def _bars(answer: AnswerColumn) -> str:
    if answer.interval is None:
        return ""
    return " The bars hold the answers of the rows read, 95 times in 100."


def _titled(answer: AnswerColumn, caption: str) -> str:
    head = answer.head[:1].upper() + answer.head[1:]
    return f"{head}: {caption[0].lower()}{caption[1:]}" if head else caption


def _cells(
    keys: Sequence[tuple[str, ...]], answer: AnswerColumn, places: Sequence[int]
) -> list[str]:
    """Some answers in words; where ``keys`` is empty, without them."""
    own, told = answer.taken(places), []
    for number, place in enumerate(places):
        text = f"{own.texts[number]}{own.with_unit}"
        if own.interval is not None:
            text += f" (answer of the rows read {own.starts[number]} to {own.ends[number]})"
        key = ", ".join(keys[place]) if keys else ""
        told.append(f"{key}: {text}" if key else text)
    return told


def _told(keys: Sequence[tuple[str, ...]], answer: AnswerColumn) -> str:
    """What a picture shows: a few answers one by one, of many the least and the largest."""
    of = f" of {answer.head}" if answer.head else ""
    if len(keys) <= _TOLD:
        return f"Published answers{of}. {_all_cells(keys, answer)}."
    # Stable, so that of equal answers the same cells are named each time: the bytes are compared.
    order = np.argsort(answer.codes, kind="stable").tolist()
    least, middle, largest = _cells(keys, answer, [order[0], order[len(order) // 2], order[-1]])
    return (
        f"{len(keys):,} published answers{of}. Least, {least}; in the middle, {middle}; "
        f"largest, {largest}. The table below has all."
    )


def _all_cells(keys: Sequence[tuple[str, ...]], answer: AnswerColumn) -> str:
    return "; ".join(_cells(keys, answer, range(len(keys))))


def _fields(
    name: str, by: Sequence[str], keys: Sequence[tuple[str, ...]], answer: AnswerColumn
) -> Picture:
    columns = spoken(by[0]), spoken(by[1])
    codes = answer.codes.tolist()
    svg = heat_map_svg(name, answer.part.answers, columns, keys, codes, answer.unit)
    of = f", in {answer.unit}" if answer.unit else ""
    caption = f"Published answers by {columns[0]} and {columns[1]}{of}: darker is more."
    return Picture(svg, _told(keys, answer), _titled(answer, caption))


def _curve(name: str, answer: AnswerColumn, values: _Values) -> Picture:
    """The answers of many cells from the least to the largest, and the band of their intervals."""
    order = np.argsort(values.first, kind="stable")
    count = order.size
    # Of fewer cells than places several round to one: each stands once.
    places = np.unique(np.rint(np.linspace(0, count - 1, _MOST_PLACES)).astype(np.int64))
    ranked = order[places]
    low, high = values.span
    middle_rank = (count + 1) // 2
    ticks = ((1.0, "1"), (float(middle_rank), f"{middle_rank:,}"), (float(count), f"{count:,}"))
    axes = (
        Axis(0.0, count + 1.0, ticks, "cells, the least answer first"),
        covering_axis(low, high, answer.unit, most=5),
    )
    legend = [Entry("published", BLUE, SOLID)]
    if values.low is not None:
        legend.append(Entry("95 times in 100", PALE))
    chart = Chart(f"answers-{name}", 150, axes, legend, width=NARROW)
    ends = np.append(places[1:], count)
    if values.low is not None and values.high is not None:
        sides = (places + 1.0, ends + 1.0, values.low[ranked], values.high[ranked])
        boxes = np.stack(sides, axis=1).tolist()
        # The edge closes the hairlines that renderers leave between boxes side by side.
        chart.boxes(boxes, PALE, f'stroke="{PALE}" stroke-width="1.2"')
    points = zip((places + 1.0).tolist(), values.first[ranked].tolist(), strict=True)
    chart.line(points, BLUE, SOLID, 1.8)
    # Without its keys: the picture has thousands of cells, and shows none by name.
    told = [int(order[0]), int(order[count // 2]), int(order[-1])]
    least, middle, largest = _cells((), answer, told)
    words = (
        f"{count:,} published answers from the least to the largest. Least, {least}; in the "
        f"middle, {middle}; largest, {largest}. The table below has all."
    )
    caption = f"All {count:,} published answers, the least first."
    if values.low is not None:
        caption += " The band holds the answers of the rows read, 95 times in 100."
    return Picture(chart.svg(), words, _titled(answer, caption))


def _round(keys: Sequence[tuple[str, ...]], answer: AnswerColumn) -> Picture:
    """A clock for each of a few cells; of many, how many cells have each answer."""
    labels = answer.part.shown_labels()
    if len(keys) > _MOST_CLOCKS:
        counts = np.bincount(answer.codes, minlength=len(labels)).tolist()
        caption = "How many cells have each answer, round the circle; areas are in proportion."
        svg = rose_svg(labels, counts)
        return Picture(svg, _counted(answer, counts), _titled(answer, caption))
    faces = []
    for place, key in enumerate(keys):
        run = None
        if answer.interval is not None:
            run = int(answer.interval.low[place]), int(answer.interval.high[place])
        faces.append(Face(_short(key), int(answer.codes[place]), run))
    caption = (
        f"Each circle has the {len(labels)} possible answers; the hand points to the published one."
    )
    if answer.interval is not None:
        caption += " The arc holds the answer of the rows read, 95 times in 100."
    words = f"Published answers on a circle of {len(labels)}. {_all_cells(keys, answer)}."
    return Picture(clocks_svg(labels, faces), words, _titled(answer, caption))


def _counted(answer: AnswerColumn, counts: Sequence[int]) -> str:
    """How many cells have each of the answers, the most frequent first."""
    labels = answer.part.answers.labels
    # By negative counts, not reversed: of equal counts the first label stays first.
    order = np.argsort(-np.array(counts), kind="stable").tolist()
    sentences = []
    for code in order[:_TOLD]:
        if counts[code]:
            sentences.append(f"{labels[code]} in {counts[code]:,}")
    return f"Of {sum(counts):,} cells, the published answer is {', '.join(sentences)}."


def _categories(name: str, answer: AnswerColumn) -> Picture | None:
    """How many cells have each category."""
    domain = answer.part.answers
    if domain.size > _MOST_BARS:
        return None
    counts: list[int] = np.bincount(answer.codes, minlength=domain.size).tolist()
    labels = [_short((str(label),)) for label in domain.labels]
    across = number_axis(0, 1.15 * max(counts), "cells", has_grid=True, most=4)
    axes = across, name_axis(labels[::-1])
    chart = Chart(f"answers-{name}", 8 + 18.0 * domain.size, axes, width=NARROW)
    for place, count in enumerate(counts[::-1]):
        chart.boxes([(0, count, place - 0.36, place + 0.36)], BLUE)
        chart.note(count, place, f"{count:,}")
    caption = "In how many cells each category was published."
    return Picture(chart.svg(), _counted(answer, counts), _titled(answer, caption))
