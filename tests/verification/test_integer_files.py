"""Files of noise on the integers: written, read back, and refused at once where they are forged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from release.bundle.read import parse_mechanism
from release.bundle.statements import accuracy_of, epsilon_everywhere
from release.errors import VerificationError
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise, Tail
from release.exact.numbers import exp_bounds, format_exact, format_up
from release.exact.privacy import MAX_WORK
from release.exact.sensitivity import Sensitivity
from release.pipeline import run_release
from release.queries.read import parse_spec
from release.records.mechanisms import IntegerRecord, intervals
from release.spec.guarantees import GuaranteeSpec
from release.spec.losses import loss_of
from release.spec.query import Query
from release.verification import standalone
from release.verification.mechanisms import check_mechanism
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.small import UNSIGNED, Row, Small, query
from tests.verification.standalone.test_verdicts import sum_up
from tests.verification.test_hostile import many, with_change

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]

Plain = dict[str, Any]


def counted(name: str, largest: int) -> Plain:
    """A count of 0..largest by noise on the integers."""
    answers = {"ordered": {"min": 0, "max": largest}}
    return query("count", name=name, sensitivity="global", mechanism="integer", domain=answers)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of two counts by noise on the integers, one of them remapped at both ends."""
    place = tmp_path_factory.mktemp("integer")
    queries = [counted("count", 30), counted("squares", 30) | {"loss": "squared"}]
    return run_release(Small(ROWS, queries).write(place), place).public


@pytest.fixture(scope="module")
def queries(public: Path) -> dict[str, Query]:
    found = parse_spec((public / "spec.yaml").read_bytes()).released
    return {query.name: query for query in found}


@pytest.fixture(params=["count", "squares"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plain_of(public: Path, name: str) -> Plain:
    plain: Plain = json.loads((public / "mechanisms" / f"{name}.json").read_bytes())
    return plain


def checked(plain: Plain, query: Query) -> Sensitivity:
    file = f"mechanisms/{plain['query']}.json"
    return check_mechanism(file, parse_mechanism(file, rfc8785.dumps(plain)), query)


def refused(plain: Plain, query: Query) -> str:
    with pytest.raises(VerificationError) as error:
        checked(plain, query)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 1500
    return message


def test_the_release_verifies(public: Path) -> None:
    verdict = verify(public, None, UNSIGNED)
    assert sum("the mechanism satisfies" in line for line in verdict.proved) == 2
    bounds = [one for one in verdict.findings if one.identifier == "mechanism.bound"]
    assert [one.text.partition(":")[0] for one in bounds] == ["count", "squares"]
    for one, name in zip(bounds, ["count", "squares"], strict=True):
        design = plain_of(public, name)["design"]
        assert (one.found, one.expected) == (
            design["bounded_loss"],
            f"at least {design['lower_bound']}",
        )


def test_a_file_is_read_back_as_it_was_written(
    public: Path, queries: dict[str, Query], name: str
) -> None:
    plain = plain_of(public, name)
    record = parse_mechanism(name, rfc8785.dumps(plain))
    assert isinstance(record, IntegerRecord)
    mechanism, sensitivity = record.to_mechanism(), record.to_sensitivity()
    assert sensitivity.distances == (1, 2, 3)
    assert checked(plain, queries[name]) == sensitivity
    again = IntegerRecord.own_fields(mechanism, sensitivity)
    assert all(getattr(record, field) == value for field, value in again.items())
    assert bool(mechanism.low) == bool(mechanism.high) == (name == "squares")
    assert record.sentence.endswith("to 31 answers in order, proved for neighbors up to 3 apart")
    assert ("remapped" in record.sentence) == (name == "squares")


def put(*path: Any, value: Any) -> Callable[[Plain], None]:
    def change(plain: Plain) -> None:
        at = plain
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def more(*path: Any, by: int) -> Callable[[Plain], None]:
    """An integer, or one written as text, plus ``by``."""

    def change(plain: Plain) -> None:
        at = plain
        for step in path[:-1]:
            at = at[step]
        old = at[path[-1]]
        at[path[-1]] = str(int(old) + by) if isinstance(old, str) else old + by

    return change


def both(*changes: Callable[[Plain], None]) -> Callable[[Plain], None]:
    def change(plain: Plain) -> None:
        for one in changes:
            one(plain)

    return change


def tail(side: str, name: str, by: int) -> Callable[[Plain], None]:
    return more("noise", side, name, by=by)


def raised_bound(plain: Plain) -> None:
    design = plain["design"]
    units = int(Fraction(design["lower_bound"]) * 10**18) + 1
    design["lower_bound"] = f"{units // 10**18}.{units % 10**18:018d}"


def split_run(plain: Plain) -> None:
    """The same noise with its middle run written as two, which is another file."""
    noise = plain["noise"]
    at = max(range(len(noise["lengths"])), key=lambda i: noise["lengths"][i])
    noise["lengths"][at : at + 1] = [1, noise["lengths"][at] - 1]
    noise["weights"].insert(at, noise["weights"][at])


FORGED: dict[str, Callable[[Plain], None]] = {
    "one weight more": more("noise", "weights", 0, by=1),
    "weight moved up": both(
        more("noise", "weights", 0, by=-(2**50)), more("noise", "weights", -1, by=2**50)
    ),
    "weights of 1": put("noise", "weights", value=["1", "1", "1"]),
    "a total of 2^70": put("total", value=str(2**70)),
    "another total": more("total", by=-1),
    "left ratio": tail("left", "ratio", -1),
    "both ratios": both(tail("left", "ratio", -(2**40)), tail("right", "ratio", -(2**40))),
    "ratio of 0": put("noise", "left", "ratio", value="0"),
    "ratio of 1": put("noise", "left", "ratio", value=str(2**64)),
    "no left tail": put("noise", "left", value=None),
    "no tails": both(put("noise", "left", value=None), put("noise", "right", value=None)),
    "longer period": tail("right", "period", 1),
    "huge period": put("noise", "right", "period", value=2**53 - 1),
    "overlapping tails": both(tail("left", "period", 40), tail("right", "period", 40)),
    "noise moved up": more("noise", "low", by=1),
    "low far away": put("noise", "low", value=-(2**53) + 1),
    "huge run": put("noise", "lengths", 0, value=2**53 - 1),
    "run of 0": put("noise", "lengths", 0, value=0),
    "negative run": put("noise", "lengths", 0, value=-3),
    "more lengths": put("noise", "lengths", value=[1] * 50),
    "many lengths": put("noise", "lengths", value=[1] * 10**5),
    "split run": split_run,
    "bound": raised_bound,
    "bounded loss": put("design", "bounded_loss", value="1000"),
    "objective": put("design", "objective", value="0.1"),
    "no distances": put("distances", value=[]),
    "distances left out at the start": put("distances", value=[[2, 3]]),
    "distances twice": put("distances", value=[[1, 3], [1, 3]]),
    "distances split": put("distances", value=[[1, 1], [2, 3]]),
    "distances descending": put("distances", value=[[3, 3], [1, 2]]),
    "distances reversed": put("distances", value=[[3, 1]]),
    "distances of 0": put("distances", value=[[0, 3]]),
    "negative distances": put("distances", value=[[-3, 3]]),
    "more distances": put("distances", value=[[1, 30]]),
    "all distances": put("distances", value=[[1, 31]]),
    "distances beyond memory": put("distances", value=[[1, 2**53 - 1]]),
    "a group beyond memory": put("group", value=[2**53 - 1]),
    "two groups": put("group", value=[31, 31]),
    "no group": put("group", value=[]),
    "a low end of no answer": put("low_end", value=[[1, -1]]),
    "a low end of 0": put("low_end", value=[[0, 0]]),
    "a low end too long": put("low_end", value=[[31, 0], [1, 0]]),
    "a huge low end": put("low_end", value=[[2**53 - 1, 0]]),
    "ends that overlap": both(
        put("low_end", value=[[20, 1]]), put("high_end", value=[[20, -1]])
    ),
    "a moved high end": put("high_end", value=[[5, -4]]),
    "an end of three numbers": put("low_end", value=[[1, 0, 0]]),
    "the ε between any two answers": put("recomputed", "epsilon_everywhere", value="9"),
    "no ε between any two answers": put("recomputed", "epsilon_everywhere", value="inf"),
    "δ": put("recomputed", "delta_approximate", value="0.1"),
    "accuracy": put("accuracy", "mean_absolute", value="0.5"),
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_file_is_refused(
    public: Path, queries: dict[str, Query], name: str, forged: str
) -> None:
    plain = plain_of(public, name)
    FORGED[forged](plain)
    assert rfc8785.dumps(plain) != (public / "mechanisms" / f"{name}.json").read_bytes()
    refused(plain, queries[name])


@pytest.mark.parametrize("end", ["low_end", "high_end"])
def test_equal_mechanisms_have_equal_files(
    public: Path, queries: dict[str, Query], end: str
) -> None:
    refused(plain_of(public, "count") | {end: [[1, 0]]}, queries["count"])


def test_a_bound_may_be_lower(public: Path, queries: dict[str, Query]) -> None:
    """Nothing stronger is said of a mechanism than what is proved of it."""
    plain = plain_of(public, "count")
    plain["design"] |= {"lower_bound": "0", "gap": plain["design"]["bounded_loss"]}
    assert checked(plain, queries["count"])


@pytest.mark.parametrize(
    ("part", "figure"), [("accuracy", "mean_absolute"), ("design", "objective")]
)
def test_a_figure_may_differ_by_a_share_of_a_billionth(
    public: Path, queries: dict[str, Query], name: str, part: str, figure: str
) -> None:
    """Some are computed in floats; section 5.3 of the format says how near they have to be."""
    plain = plain_of(public, name)
    exact = Fraction(plain[part][figure])
    for billionths, is_near in (("0.9", True), ("-0.9", True), ("1.1", False), ("-1.1", False)):
        moved = exact + max(Fraction(1), exact) * Fraction(billionths) / 10**9
        plain[part][figure] = format_up(moved, 18)
        if is_near:
            checked(plain, queries[name])
        else:
            refused(plain, queries[name])


def test_fewer_distances_are_another_sensitivity(public: Path, queries: dict[str, Query]) -> None:
    """The verifier compares what is returned here with the distances of the spec."""
    plain = plain_of(public, "count")
    plain["distances"] = [[1, 2]]
    plain["design"] |= {"bound": "solver"}
    assert checked(plain, queries["count"]).distances == (1, 2)


@many
@given(data=st.data())
def test_a_file_with_odd_values(
    public: Path, queries: dict[str, Query], data: st.DataObject
) -> None:
    plain = plain_of(public, data.draw(st.sampled_from(["count", "squares"])))
    try:
        text = rfc8785.dumps(with_change(plain, data))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        return
    try:
        record = parse_mechanism("file", text)
        check_mechanism(f"mechanisms/{record.query}.json", record, queries[record.query])
    except (VerificationError, KeyError) as error:
        assert "\n" not in str(error)


@settings(max_examples=100)
@given(st.sets(st.integers(1, 60)))
def test_intervals_hold_the_distances_and_no_more(steps: set[int]) -> None:
    found = intervals(sorted(steps))
    assert [k for first, last in found for k in range(first, last + 1)] == sorted(steps)
    assert all(b[0] > a[1] + 1 for a, b in pairwise(found))


# What would take hours, or all memory, runs beside the tests with little of both.

BESIDE = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
resource.setrlimit(resource.RLIMIT_CPU, (6, 6))
import rfc8785
from pathlib import Path
from release.bundle.read import parse_mechanism
from release.errors import VerificationError
from release.queries.read import parse_spec
from release.verification import standalone
from release.verification.mechanisms import check_mechanism
spec, plain = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_bytes())
query = parse_spec(spec.read_bytes()).released[0]
try:
    file = f"mechanisms/{plain['query']}.json"
    check_mechanism(file, parse_mechanism(file, rfc8785.dumps(plain)), query)
except VerificationError as error:
    print("refused", error)
"""


def beside(folder: Path, plain: Plain, largest: int, rows: int | None = None) -> str:
    """What becomes of a file for a count of 0..largest, with 6 seconds of a processor and 4 GiB.

    A unit has as many rows, or ``rows``.
    """
    spec = Small([], [counted("count", largest)], max_rows_per_unit=rows or largest)
    spec.write(folder)
    plain["group"] = [largest + 1]
    (folder / "file.json").write_bytes(rfc8785.dumps(plain))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BESIDE, folder / "spec.yaml", folder / "file.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    return ran.stdout.split()[0] if ran.stdout else f"{ran.returncode} {ran.stderr[-200:]}"


@pytest.mark.parametrize("reach", [2**21, 2**52])
def test_long_tables_of_the_ends_take_little_memory(
    public: Path, tmp_path: Path, reach: int
) -> None:
    """One line of a file says of any number of outcomes what is published for them."""
    largest = 2**52
    plain = plain_of(public, "count") | {"group": [largest + 1], "low_end": [], "high_end": []}
    record = parse_mechanism("file", rfc8785.dumps(plain))
    # Right, so that the figures are reached that take what the tables read.
    plain["recomputed"]["epsilon_everywhere"] = epsilon_everywhere(record.to_mechanism())
    for ends in ({"low_end": [[reach - 1, 0], [1, -1]]}, {"high_end": [[1, 1 - reach]]}):
        assert beside(tmp_path, plain | ends, largest, rows=3) == "refused"


@pytest.mark.parametrize("last", [10**6 + 1, 10**8, 2**51])
def test_more_than_a_million_distances_are_counted_and_not_listed(
    public: Path, tmp_path: Path, last: int
) -> None:
    plain = plain_of(public, "count") | {"group": [2**52 + 1], "distances": [[1, 5], [7, last + 1]]}
    record = parse_mechanism("file", rfc8785.dumps(plain))
    with pytest.raises(ValueError, match="more than 1,000,000 distances"):
        record.to_sensitivity()
    assert beside(tmp_path, plain, 2**52, rows=3) == "refused"


def test_what_runs_beside_refuses_forged_files(public: Path, tmp_path: Path) -> None:
    assert beside(tmp_path, plain_of(public, "count"), 60) == "refused"


NARROW: Plain = {
    "low": -1,
    "lengths": [1, 1, 1],
    "weights": ["1", "2", "1"],
    "left": {"period": 1, "ratio": str(2**63 + 12345)},
    "right": {"period": 1, "ratio": str(2**63 + 12345)},
}


def test_a_narrow_noise_for_far_neighbors_is_refused(public: Path, tmp_path: Path) -> None:
    """Three runs; a mass 20000 periods out has a million bits."""
    plain = plain_of(public, "count") | {"noise": NARROW, "total": "4"}
    assert beside(tmp_path, plain | {"distances": [[1, 20_000]]}, 20_000) == "refused"


def test_distances_up_to_every_answer_are_refused(tmp_path: Path) -> None:
    """A bound, a power and a shift for each of them would take minutes."""
    wide = {"ordered": {"min": 0, "max": 3_000_000}}
    rows: list[Row] = [{"unit": "u", "place": "a", "day": 1, "kind": 0, "wh": 0}]
    asked = query("count", name="counted", sensitivity="global", domain=wide)
    spec = Small(rows, [asked], max_rows_per_unit=1).write(tmp_path)
    public = run_release(spec, tmp_path / "out").public
    path = public / "mechanisms" / "counted.json"
    plain = json.loads(path.read_bytes()) | {"distances": [[1, 1_000_000]]}
    path.write_bytes(rfc8785.dumps(plain))
    sum_up(public)
    with pytest.raises(VerificationError, match="δ: found 1"):
        verify(public, None, UNSIGNED)
    assert standalone.main([str(public), "--require", "none"]) == 1


@pytest.mark.parametrize("exponent", [20, 25, 30])
def test_the_power_of_far_noise_is_rounded_up_by_less_than_shows(exponent: int) -> None:
    """Beside the exact power of 300 periods, at ε that are hardly above and below it."""
    flat = {**NARROW, "weights": ["341", "342", "341"]}
    for side in ("left", "right"):
        flat[side] = {"period": 1, "ratio": str(2**64 * 341 // 342)}
    noise = standalone.Noise("file", flat, 1024)
    ratio = noise.step_ratio()
    assert ratio is not None
    digits = Context(prec=60)
    exact = digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    epsilon = 300 * Fraction(digits.ln(exact))
    found = []
    for sign in (-1, 1):
        near = epsilon + Fraction(sign, 10**exponent)
        is_pure = bool(noise.proved("file", set(range(1, 301)), near))
        assert is_pure == (ratio**300 * standalone.SCALE <= standalone.below_e(near))
        found.append(is_pure)
    assert found == [False, True]


def test_distances_named_again_and_again_are_refused(public: Path, tmp_path: Path) -> None:
    plain = plain_of(public, "count") | {"distances": [[1, 100_000]] * 20_000}
    assert beside(tmp_path, plain, 100_000) == "refused"


def test_many_distances_of_ragged_noise_are_refused(public: Path, tmp_path: Path) -> None:
    """1000 runs that are not unimodal, and each of 20000 distances is tried."""
    weights = [1 + place % 2 for place in range(1001)]
    weights[500] += 2**11 - sum(weights)
    noise = {
        "low": -500,
        "lengths": [1] * len(weights),
        "weights": list(map(str, weights)),
        "left": None,
        "right": None,
    }
    plain = plain_of(public, "count") | {"noise": noise, "total": str(2**11)}
    plain |= {"distances": [[1, 20_000]]}
    record = parse_mechanism("file", rfc8785.dumps(plain | {"group": [20_001]}))
    assert record.comparisons < MAX_WORK
    assert beside(tmp_path, plain, 20_000) == "refused"


def test_noise_of_many_runs_has_its_figures_at_once(public: Path, tmp_path: Path) -> None:
    """10^4 runs, unimodal: δ is claimed to be 0.9, and the file is otherwise wrong."""
    weights = [20_000 - place for place in range(10_000)]
    total = 2 ** (2 * sum(weights)).bit_length()
    half = [total - 2 * sum(weights[1:]), *weights[1:]]
    every = [*half[:0:-1], *half]
    sides = {"period": 1, "ratio": str(2**63)}
    noise = {
        "low": 1 - len(half),
        "lengths": [1] * len(every),
        "weights": list(map(str, every)),
        "left": sides,
        "right": sides,
    }
    plain = plain_of(public, "count") | {"noise": noise, "total": str(total)}
    plain["guarantee"] = {"definition": "pure", "epsilon": "1", "delta": "0"}
    record = parse_mechanism("file", rfc8785.dumps(plain))
    assert isinstance(record, IntegerRecord)
    mechanism = record.to_mechanism()
    assert isinstance(mechanism, IntegerMechanism)
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (6, 6))\n"
        "import sys; from pathlib import Path\n"
        "from release.bundle.read import parse_mechanism\n"
        "data = Path(sys.argv[1]).read_bytes()\n"
        "parse_mechanism('file', data).to_mechanism().epsilon_everywhere()"
    )
    (tmp_path / "file.json").write_bytes(rfc8785.dumps(plain))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, tmp_path / "file.json"],
        check=False,
        cwd=PROJECT,
    )
    assert ran.returncode == 0


NEAR_ONE = {"period": 1, "ratio": str(2**64 - 1)}


@pytest.mark.parametrize("kind", ["ratio next to 1", "zeros at the end"])
def test_noise_whose_figures_divide_by_zero_ends_in_a_verdict(
    public: Path, queries: dict[str, Query], kind: str
) -> None:
    half = {"period": 1, "ratio": str(2**63)}
    noise: Plain = {**NARROW, "left": NEAR_ONE, "right": NEAR_ONE}
    if kind == "zeros at the end":
        weights = ["0", "1", "2", "1", "0"]
        noise = {"low": -2, "lengths": [1] * 5, "weights": weights, "left": half, "right": half}
    plain = plain_of(public, "count") | {"noise": noise, "total": "4"}
    plain["guarantee"] = {"definition": "approximate", "epsilon": "1", "delta": "1/2"}
    plain["distances"] = [[1, 1]]
    record = parse_mechanism("file", rfc8785.dumps(plain))
    deltas = record.to_mechanism().deltas(record.to_sensitivity(), Fraction(1))
    plain["guarantee"]["delta"] = "0.9"
    plain["recomputed"] = {
        "delta_probabilistic": format_exact(deltas.probabilistic),
        "delta_approximate": format_up(deltas.approximate, 60),
        # Of zeros at the end there is none; for the other the noise falls by 2^65 from 0 to 1.
        "epsilon_everywhere": "inf" if kind == "zeros at the end" else "45.054566736397",
    }
    weaker = queries["count"].model_copy(
        update={"guarantee": GuaranteeSpec.model_validate(plain["guarantee"], strict=False)}
    )
    crashed = ""
    try:
        checked(plain, weaker)
    except VerificationError:
        pass
    except Exception as error:
        crashed = repr(error)
    assert not crashed


def test_noise_that_is_private_for_the_largest_distance_alone_is_refused(tmp_path: Path) -> None:
    """Pure for the distance 2 at ε = 2.1, and with δ = 0.239 for the distance 1."""
    asked = counted("count", 30) | {"guarantee": {"definition": "pure", "epsilon": "2.1"}}
    public = run_release(Small(ROWS, [asked], max_rows_per_unit=2).write(tmp_path), tmp_path).public
    (read,) = parse_spec((public / "spec.yaml").read_bytes()).released
    plain = plain_of(public, "count")
    assert plain["distances"] == [[1, 2]]
    assert checked(plain, read)
    noise = IntegerNoise(-1, ((2, 1), (1, 6)), Tail(1, 2**63), Tail(2, 2**63))
    assert noise.deltas((1,), exp_bounds(Fraction("2.1"))[0]).approximate > Fraction(23, 100)
    mechanism = IntegerMechanism(noise, 31)
    plain["noise"] = {
        "low": -1,
        "lengths": [2, 1],
        "weights": ["1", "6"],
        "left": {"period": 1, "ratio": str(2**63)},
        "right": {"period": 2, "ratio": str(2**63)},
    }
    loss = format_up(noise.moment(0), 18)
    objective = format_up(mechanism.objective(loss_of(read), read.answers), 18)
    plain["design"] |= {"objective": objective, "bounded_loss": loss, "lower_bound": "0"}
    plain["design"]["gap"] = loss
    plain |= {"total": "8", "accuracy": accuracy_of(mechanism, read.answers).model_dump()}
    plain["recomputed"]["epsilon_everywhere"] = epsilon_everywhere(mechanism)
    refused(plain, read)
