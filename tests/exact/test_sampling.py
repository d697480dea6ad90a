"""Drawing: exact boundaries, the right frequencies, one source of randomness."""

from __future__ import annotations

import ast
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from release.exact.channel import Channel
from release.exact.domain import Group
from release.exact.modular import Modular
from release.exact.pmf import Pmf
from release.exact.sampling import draw_geometric, draw_noise, draw_odd, random_below_power
from research.published.clamping import geometric
from research.published.geng import zero_delta_noise
from research.published.integer_pmf import IntegerPmf, draw_on_line
from tests.conftest import PROJECT


def fixed(*integers: int, bits: int) -> Callable[[int], bytes]:
    """A source whose words, shortened to ``bits``, are the given integers."""
    width = 8 if bits <= 62 else -(-bits // 8)
    spare = 8 * width - bits
    data = b"".join((i << spare).to_bytes(width, "little") for i in integers)

    def source(count: int) -> bytes:
        assert count == len(data)
        return data

    return source


@pytest.mark.parametrize("bits", [4, 62])
def test_the_boundaries_of_the_inverse_cdf_are_exact(bits: int) -> None:
    total = 2**bits
    law = Pmf.of(Group((5,)), [3, 0, 1, total - 5, 1])
    at = [0, 2, 3, 4, total - 2, total - 1]
    assert draw_noise(law, len(at), fixed(*at, bits=bits)).tolist() == [0, 0, 2, 3, 3, 4]


@given(st.integers(1, 64), st.binary(min_size=8, max_size=8))
def test_words_are_shortened_to_their_high_bits(bits: int, data: bytes) -> None:
    drawn = int(random_below_power(bits, 1, lambda count: data)[0])
    assert drawn == int.from_bytes(data, "little") >> (64 - bits)


def test_every_integer_of_a_small_law_is_drawn_as_often_as_its_weight() -> None:
    law = Pmf.of(Group((4,)), [5, 0, 10, 1])
    drawn = draw_noise(law, 16, fixed(*range(16), bits=4))
    assert np.bincount(drawn, minlength=4).tolist() == [5, 0, 10, 1]


def test_the_boundary_of_an_odd_geometric_number_is_exact() -> None:
    """For a ratio of ½ the chance is ⅓, in words of 0x5555…: a tie takes another word."""
    third, half = 0x5555_5555_5555_5555, 1 << 63
    assert draw_odd(half, 3, fixed(0, third - 1, third + 1, bits=64)).tolist() == [1, 1, 0]
    for second, expected in ((0, 1), (third - 1, 1), (third + 1, 0)):
        waiting = [third, second]

        def source(count: int, waiting: list[int] = waiting) -> bytes:
            assert count == 8
            return waiting.pop(0).to_bytes(8, "little")

        assert draw_odd(half, 1, source).tolist() == [expected]


def one_by_one(*integers: int) -> Callable[[int], bytes]:
    """A source of these words, however many are asked for at once."""
    left = iter(integers)
    return lambda count: b"".join(next(left).to_bytes(8, "little") for _ in range(count // 8))


def test_the_geometric_numbers_of_the_largest_ratio_end_at_their_62_digits() -> None:
    """P(G ≥ 2^62) is (1 - 2^-64)^(2^62), about 0.78; the last word decides by its complement."""
    high, context = 2**64 - 1, Context(prec=60)
    loss = context.ln(context.subtract(Decimal(1), context.power(Decimal(2), Decimal(-64))))
    chance = int(context.exp(loss * 2**62) * 2**64)
    for words, number in (
        ([0] * 62 + [0], 2**62 - 1),
        ([0] * 62 + [high], 2**62),
        ([high] * 62 + [0], 0),
        ([high] * 62 + [high - (chance - 1)], 2**62),
        ([high] * 62 + [high - (chance + 1)], 0),
        ([high] * 3 + [0] + [high] * 58 + [0], 2**3),
    ):
        assert draw_geometric(high, 1, one_by_one(*words)).tolist() == [number]


def test_one_number_goes_beyond_all_digits_and_another_does_not() -> None:
    """Of ratio 1/2 there are 7 digits; going on from there takes a second word below 2^-128."""
    high = 2**64 - 1
    none, first_goes = [high, high] * 7, [high, 0]
    again = [0, high, *[high, high] * 6, 0, 0]
    drawn = draw_geometric(1 << 63, 2, one_by_one(*none, *first_goes, 0, *again))
    assert drawn.tolist() == [2**7 + 1, 0]


def test_more_geometric_numbers_than_are_drawn_at_once_follow_their_law() -> None:
    count = 3 * 2**16 + 5
    drawn = draw_geometric(1 << 63, count, np.random.default_rng(4).bytes)
    seen = np.bincount(np.minimum(drawn, 9), minlength=10)
    expected = np.array([2.0 ** -(number + 1) for number in range(9)] + [2.0**-9]) * count
    assert chisquare(seen, expected).pvalue > 1e-6


def test_frequencies_of_odd_geometric_numbers() -> None:
    ratio = (1 << 64) // 5 * 4
    ones = int(draw_odd(ratio, 10**5).sum())
    expected = 10**5 * 4 / 9
    # A false alarm about once in a hundred million runs.
    assert chisquare([ones, 10**5 - ones], [expected, 10**5 - expected]).pvalue > 1e-8


def test_noise_is_added_to_joint_answers_by_coordinates() -> None:
    law = Pmf.of(Group((2, 3)), [1, 1, 1, 1, 1, 11])
    answers = np.array([0, 4, 5])
    noisy = Modular(law).draw(answers, fixed(1, 5, 4, bits=4))
    # (0,0)+(0,1), (1,1)+(1,2), (1,2)+(1,1)
    assert noisy.tolist() == [1, 0, 0]


@pytest.mark.parametrize("bits", [10, 62, 80])
def test_frequencies_of_a_million_draws(bits: int) -> None:
    count = 10**6 if bits <= 62 else 10**5
    shares = [512, 256, 128, 64, 32, 16, 8, 4, 3, 1]
    law = Pmf.of(Group((10,)), [share * 2 ** (bits - 10) for share in shares])
    seen = np.bincount(draw_noise(law, count), minlength=10)
    expected = np.array(shares) / 1024 * count
    # A false alarm about once in a hundred million runs.
    assert chisquare(seen, expected).pvalue > 1e-8


def test_the_noise_of_a_grid_is_drawn_as_it_is_proved() -> None:
    """(0, δ) noise of Geng et al.: 10⁶ draws, and the very integers at its ends."""
    noise = zero_delta_noise(4, Fraction("0.3"), Fraction(2))
    draws = draw_on_line(noise, 10**6)
    values = np.arange(noise.low, noise.high + 1)
    expected = np.array([float(noise.mass(k)) for k in values.tolist()]) * 10**6
    seen = np.bincount(draws - noise.low, minlength=values.size)
    assert seen.sum() == 10**6
    assert chisquare(seen, expected).pvalue > 1e-8
    law = noise.to_pmf()
    assert draw_on_line(noise, 2, fixed(0, law.total - 1, bits=law.bits)).tolist() == [
        noise.low,
        noise.high,
    ]
    assert set(draw_on_line(IntegerPmf(7, (Fraction(1),)), 5).tolist()) == {7}
    for endless in (geometric(Fraction(1)), IntegerPmf.of(0, [Fraction(1)] * 3)):
        with pytest.raises(ValueError, match="has to end"):
            draw_on_line(endless, 1)


def test_noise_is_added_modulo_the_number_of_answers() -> None:
    law = Pmf.of(Group((4,)), [0, 0, 2, 2])
    noisy = Modular(law).draw(np.array([0, 1, 2, 3]), fixed(0, 3, 1, 2, bits=2))
    assert noisy.tolist() == [2, 0, 0, 2]


@pytest.mark.parametrize("code", [-1, 4])
def test_codes_outside_the_domain_are_refused(code: int) -> None:
    law = Pmf.of(Group((4,)), [1, 1, 1, 1])
    for codes in (np.array([code]), np.array([0, code, 3])):
        with pytest.raises(ValueError, match="outside"):
            Modular(law).draw(codes)
        with pytest.raises(ValueError, match="outside"):
            Channel.of_mechanism(Modular(law)).draw(codes)


@pytest.mark.parametrize("bits", [0, 65])
def test_words_have_one_to_64_bits(bits: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 64"):
        random_below_power(bits, 1)


@pytest.mark.parametrize("bits", [3, 62])
def test_each_answer_is_drawn_from_its_own_row(bits: int) -> None:
    """Every boundary of every row, with the answers mixed."""
    unit = 2 ** (bits - 3)
    channel = Channel.of([[5 * unit, 3 * unit, 0], [0, 8 * unit, 0], [unit, 0, 7 * unit]])
    answers = np.array([0, 2, 0, 1, 2, 1, 0, 2])
    draws = [0, unit - 1, 5 * unit - 1, 0, unit, 8 * unit - 1, 5 * unit, 8 * unit - 1]
    drawn = channel.draw(answers, fixed(*draws, bits=bits))
    assert drawn.tolist() == [0, 0, 0, 1, 2, 1, 1, 2]


def test_a_channel_of_more_than_62_bits_is_not_drawn_from() -> None:
    with pytest.raises(ValueError, match=r"at most 2\^62"):
        Channel.of([[2**62, 2**62], [2**63, 0]]).draw(np.array([0]))


def test_no_other_generator_is_imported_anywhere() -> None:
    """Neither ``random`` nor ``numpy.random`` in the package; only the sampler draws."""
    for path in [*(PROJECT / "release").rglob("*.py"), *(PROJECT / "flows").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert "random" not in {alias.name for alias in node.names}, path
            if isinstance(node, ast.ImportFrom):
                assert node.module != "random", path
                assert node.module is None or "numpy.random" not in node.module, path
            if isinstance(node, ast.Attribute):
                assert ast.unparse(node) not in {"np.random", "numpy.random"}, path
                if ast.unparse(node) == "os.urandom":
                    assert path == PROJECT / "release" / "exact" / "sampling.py", path


@pytest.mark.parametrize("bits", [63, 64, 71, 96, 133])
def test_wide_laws_are_drawn_to_their_last_bit(bits: int) -> None:
    """Draws right at the edges of the cumulative weights, where only the last bits decide."""
    total = 2**bits
    weights = [1, 0, 2 ** (bits - 1) - 2, 3, total - 2 ** (bits - 1) - 2]
    law = Pmf.of(Group((5,)), weights)
    rest, edges = bits - 62, [0]
    for weight in weights:
        edges.append(edges[-1] + weight)
    draws = sorted({d for edge in edges for d in (edge - 1, edge, edge + 1) if 0 <= d < total})
    expected = [sum(edge <= draw for edge in edges[1:]) for draw in draws]
    width = -(-rest // 8)
    for draw, element in zip(draws, expected, strict=True):
        head, tail = draw >> rest, draw & (2**rest - 1)

        def source(count: int, head: int = head, tail: int = tail) -> bytes:
            if count == 8:
                return ((head << 2) % 2**64).to_bytes(8, "little")
            return (tail << (8 * width - rest)).to_bytes(width, "little")

        assert draw_noise(law, 1, source).tolist() == [element]
