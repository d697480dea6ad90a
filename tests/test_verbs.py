"""The verbs of the package: exact numbers in, one line for what cannot be meant."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import release
from release.errors import DesignError, SpecError, VerificationError
from release.records.keys.files import create_key
from tests.small import Small, query


def test_a_mechanism_is_one_line() -> None:
    made = release.design(answers=24, topology="cyclic", sensitivity=[1], epsilon=1, loss="squared")
    assert made.is_within()
    # f(0) of the closed form for the error rate: (E - 1)/(E + 1) up to the ends of the circle.
    rate = release.design(24, "cyclic", sensitivity=[1], epsilon=1)
    assert float(1 - rate.objective) == pytest.approx(0.46212, abs=1e-4)
    ordered = release.design(25, "ordered", sensitivity=[1], epsilon="1", loss="squared")
    assert float(ordered.objective) == pytest.approx(1.6470, abs=1e-4)
    delta = release.design(24, "cyclic", sensitivity=[1], epsilon=Fraction(1), delta="0.01")
    assert delta.guarantee.definition.value == "approximate"
    assert delta.objective < rate.objective


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"epsilon": 0.1},
            'epsilon: found 0.1; write an integer, a Fraction, or text such as "0.1"',
        ),
        ({"epsilon": "0,1"}, "epsilon: not an exact number"),
        ({"epsilon": -1}, "epsilon: found -1; write a number of at least 0"),
        ({"epsilon": True}, "epsilon: found True"),
        ({"delta": 0.5}, "delta: found 0.5"),
        ({"topology": "round"}, "topology: found 'round'; write nominal, ordered or cyclic"),
        ({"topology": ["cyclic"]}, "topology: found ['cyclic']; write nominal"),
        ({"loss": "cubic"}, "loss: found 'cubic'; write error_rate, absolute, squared or"),
        ({"definition": "zero"}, "definition: found 'zero'; write pure, probabilistic or"),
        (
            {"mechanism": "nonsense"},
            "mechanism: found 'nonsense'; write best, modular, integer, channel",
        ),
        ({"definition": "pure", "delta": "0.1"}, "design: a pure guarantee has delta 0"),
        ({"answers": 1}, "answers: found 1; write an integer from 2 to 1000000"),
        ({"answers": "3"}, "answers: found '3'; write an integer"),
        ({"answers": 2.5}, "answers: found 2.5; write an integer"),
        ({"answers": True}, "answers: found True; write an integer"),
        ({"answers": 10**9}, "answers: found 1000000000; write an integer"),
        ({"sensitivity": "12"}, "sensitivity: found '12'; write a list of integers"),
        ({"sensitivity": 1}, "sensitivity: found 1; write a list of integers"),
        ({"sensitivity": None}, "sensitivity: found None; write a list of integers"),
        ({"sensitivity": [1.5]}, "sensitivity: found [1.5]; write a list of integers"),
        ({"sensitivity": [True]}, "sensitivity: found [True]; write a list of integers"),
        ({"sensitivity": [24]}, "sensitivity: found 24; the largest difference of 24 cyclic"),
        ({"sensitivity": np.array([1.5])}, "sensitivity: found ndarray; write a list of integers"),
        ({"sensitivity": []}, "sensitivity: name at least one difference other than 0"),
        ({"sensitivity": [0]}, "sensitivity: name at least one difference other than 0"),
        (
            {"answers": 5, "topology": "ordered", "sensitivity": [1, -5]},
            "sensitivity: found -5; the largest difference of 5 ordered answers is 4",
        ),
        (
            {"answers": 5, "topology": "nominal", "sensitivity": [5]},
            "sensitivity: found 5; the largest difference of 5 nominal answers is 4",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line(arguments: dict[str, Any], told: str) -> None:
    plain = {"answers": 24, "topology": "cyclic", "sensitivity": [1], "epsilon": 1}
    with pytest.raises(SpecError) as refused:
        release.design(**{**plain, **arguments})
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("mechanism", ["gaussian_clamped", "gaussian_modular", "gumbel_clamped"])
@pytest.mark.parametrize(
    "guarantee",
    [
        {"epsilon": 1},
        {"epsilon": 0, "delta": "0.1"},
        {"epsilon": 1, "delta": 0, "definition": "approximate"},
        {"epsilon": 1, "delta": Fraction(1, 10**400)},
    ],
)
def test_gaussian_and_gumbel_noise_need_epsilon_and_delta(
    mechanism: str, guarantee: dict[str, Any]
) -> None:
    with pytest.raises(DesignError, match=f"{mechanism} needs epsilon and delta above 0"):
        release.design(5, "ordered", sensitivity=[1], mechanism=mechanism, **guarantee)


def test_a_numpy_sensitivity_is_one_of_integers() -> None:
    of_list = release.design(5, "ordered", sensitivity=[1, 2], epsilon=1)
    of_array = VERBS.design(np.int64(5), "ordered", sensitivity=np.array([2, 1]), epsilon=1)
    assert of_array.sensitivity == of_list.sensitivity
    assert of_array.objective == of_list.objective


VERBS: Any = release
"""The verbs as a program without types calls them."""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda spec, out: VERBS.run(spec, out, period=3), "period: found 3; write text such"),
        (lambda spec, out: VERBS.run(spec, out, period="3"), "period: found '3'; write a period"),
        (lambda spec, out: VERBS.run(spec, None), "out: found NoneType; write a path"),
        (lambda spec, out: VERBS.run(3, out), "spec: found int; write a path"),
        (lambda spec, out: VERBS.run(spec, out, key=1.5), "key: found float; write a path"),
        (lambda spec, out: VERBS.run(spec, out, accept_gap=0.1), "accept_gap: found 0.1"),
        (lambda spec, out: VERBS.plan(spec, period=[]), "period: found []; write text such"),
        (lambda spec, out: VERBS.read_spec(None), "path: found NoneType; write a path"),
        (lambda spec, out: VERBS.open(None), "folder: found NoneType; write a path"),
        (lambda spec, out: VERBS.verify(out, trust=None), "trust: found None; write a list"),
        (lambda spec, out: VERBS.verify(out, trust="a+b+c"), "trust: found 'a+b+c'; write a"),
        (lambda spec, out: VERBS.verify(out, trust=[out / "key"]), "--trust: write name+hash"),
        (lambda spec, out: VERBS.verify(out, trust=[None]), "--trust: write name+hash"),
        (lambda spec, out: VERBS.verify(out, since=out), "since: an older checkpoint"),
        (lambda spec, out: VERBS.verify(out, require=[]), "require: found []; write"),
        (lambda spec, out: VERBS.estimate(out, "q", level="0.95"), "level: found '0.95'; write"),
        (lambda spec, out: VERBS.estimate(out, "q", level=True), "level: found True; write"),
        (lambda spec, out: VERBS.estimate(out, "q", level=1.5), "level: found 1.5; write"),
    ],
)
def test_arguments_of_another_type_are_one_line(
    call: Callable[[Path, Path], object], told: str, tmp_path: Path
) -> None:
    spec = Small([], [query("count")]).write(tmp_path)
    with pytest.raises(SpecError) as refused:
        call(spec, tmp_path / "out")
    assert str(refused.value).startswith(told)
    assert not (tmp_path / "out").exists()


def test_trust_takes_the_path_of_a_key(tmp_path: Path) -> None:
    spec = Small([], [query("count", sensitivity="global")]).write(tmp_path)
    public = release.run(spec, tmp_path / "out").public
    key = tmp_path / "key.pub"
    key.write_text(str(create_key(tmp_path / "key").public("example.org/dp")))
    with pytest.raises(VerificationError, match="no signature of a key you trust"):
        release.verify(public, trust=[key])


def test_names_are_there_and_errors_are_ours(tmp_path: Path) -> None:
    assert set(release.__all__) <= set(dir(release))
    assert release.DesignError is DesignError
    with pytest.raises(AttributeError):
        _ = release.nothing  # type: ignore[attr-defined]
    with pytest.raises(SpecError, match="no such file"):
        release.plan(str(tmp_path / "nowhere.yaml"))
