"""The pictures of reports: well-formed, and drawn for all that a release can hold."""

from __future__ import annotations

from fractions import Fraction
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.bundle.report.charts import (
    NARROW,
    WIDTH,
    Chart,
    Entry,
    covering_axis,
    name_axis,
    number_axis,
    power_axis,
)
from release.bundle.report.pictures import curves_svg, heat_map_svg, losses_svg
from release.exact.domain import AnswerDomain, Topology

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<script>", 'a"b&c', "$x$", "漢" * 50]


def parsed(svg: str) -> Element:
    """The picture as a reader of XML sees it."""
    assert "nan" not in svg
    return fromstring(svg)  # noqa: S314 - our own text


@given(low=st.floats(-1e12, 1e12), spread=st.floats(1e-9, 1e12))
def test_the_numbers_of_an_axis_lie_on_it(low: float, spread: float) -> None:
    """A few of them, ascending, none beyond the ends."""
    if not low + spread > low:
        return
    axis = number_axis(low, low + spread)
    values = [value for value, _ in axis.ticks]
    assert 1 <= len(values) <= 9
    assert values == sorted(values)
    assert all(-1e-6 <= axis.share(value) <= 1 + 1e-6 for value in values)


@given(low=st.floats(-1e6, 0), spread=st.floats(1e-3, 1e6))
def test_the_labels_of_a_covering_axis_reach_its_ends(low: float, spread: float) -> None:
    """The means of a sample went on to 550 where the last label was 400."""
    axis = covering_axis(low, low + spread, most=4)
    values = [value for value, _ in axis.ticks]
    if len(values) > 1:
        step = 1.001 * (values[1] - values[0])
        assert axis.low <= low
        assert axis.high >= low + spread
        assert values[0] - low <= step / 2
        assert low + spread - values[-1] <= step / 2


def test_a_legend_takes_as_many_lines_as_it_needs() -> None:
    entries = [Entry(name, "#000") for name in ("a first name", "a second name", "a third name")]
    for width in (NARROW, WIDTH):
        chart = Chart("a", 50, (number_axis(0, 1), number_axis(0, 1)), entries, width=width)
        for text in parsed(chart.svg()).findall(f".//{SVG}text"):
            assert float(text.attrib["x"]) <= width
            if text.text and text.text.startswith("a "):
                assert float(text.attrib["x"]) + 5.8 * len(text.text) <= width


def test_labels_of_an_axis_are_as_long_as_they_need_to_be() -> None:
    """As many decimals for each, and none without a use."""
    ends = [(0, 1.5), (0, 840), (-3, 3), (0, 0.001), (-16.75, 16.75)]
    assert [number_axis(*pair).ticks[1][1] for pair in ends] == [
        "0.25",
        "200",
        "−2",
        "0.0002",
        "−10",
    ]
    assert [name for _, name in power_axis(0.05, 900).ticks] == ["0.1", "1", "10", "100"]


def test_labels_are_text_and_never_markup() -> None:
    """Whatever a key set or a domain holds; long ones are cut."""
    domain = AnswerDomain(Topology.NOMINAL, tuple(HOSTILE))
    svg = heat_map_svg(
        "a", domain, ("<b>", "&"), [(k, j) for k in HOSTILE for j in "ab"], [0, 1] * 4
    )
    texts = ["".join(element.itertext()) for element in parsed(svg)]
    assert set(HOSTILE[:3]) <= set(texts)
    assert "漢" * 39 + "…" in texts


@pytest.mark.parametrize("codes", [[0, 0], [4, 4], [0, 4], [2, 3]])
@pytest.mark.parametrize("least", [-4, -2, 0, 7])
def test_answers_stay_within_the_picture(codes: list[int], least: int) -> None:
    """Bars from 0 to an answer below or above it; all alike or none."""
    domain = AnswerDomain(Topology.ORDERED, tuple(range(least, least + 5)))
    svg = heat_map_svg("a", domain, ("k", "l"), [("a", "x"), ("b", "x")], codes)
    picture = parsed(svg)
    height = float(picture.attrib["viewBox"].split()[-1])
    for text in picture.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= WIDTH
        assert 0 <= float(text.attrib["y"]) <= height


def test_keys_that_are_numbers_stand_in_their_order() -> None:
    """Hours as text would put 10 before 2."""
    domain = AnswerDomain(Topology.ORDERED, tuple(range(5)))
    keys = [(place, str(hour)) for place in "ab" for hour in range(12)]
    svg = heat_map_svg("a", domain, ("place", "hour"), keys, [1] * 24)
    hours = [
        (float(text.attrib["x"]), "".join(text.itertext()))
        for text in parsed(svg).iter(f"{SVG}text")
        if float(text.attrib["y"]) > float(svg.split('viewBox="')[1].split()[3].rstrip('"')) - 24
        and "".join(text.itertext()).isdigit()
    ]
    assert [hour for _, hour in sorted(hours)] == list(map(str, range(12)))


def test_no_loss_and_one_point_have_a_picture() -> None:
    """Nothing is divided by a range that is empty."""
    parsed(losses_svg("l", "absolute", [("one", Fraction(0)), ("two", Fraction(0))]))
    for logarithmic in (False, True):
        parsed(curves_svg("c", ("x", "y"), [("a", [1.0], [2.0])], logarithmic=logarithmic))


def test_of_very_many_names_some_are_written() -> None:
    """As many as fit."""
    axis = name_axis(range(10_000), most=12)
    assert 6 <= len(axis.ticks) <= 12
    assert "9167" not in Chart("c", 100, (number_axis(0, 1), axis)).svg()
