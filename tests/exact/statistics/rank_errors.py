"""Rivals of joint quantiles, drawn with floating-point noise: only their rank errors are compared.

Each takes the rows at each candidate, shape (candidates,), and gives a candidate for each share.
A rank error is how many rows lie between a candidate and the rank that its share asks for. As a
program, it prints the table of docs/design/quantiles-proof.md, section 4.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from release.exact.domain import Codes
from release.exact.statistics.joint_quantiles import JointQuantiles

Shares = tuple[Fraction, ...]


def rank_errors(rows: Codes, shares: Shares, published: Codes) -> list[float]:
    """The rank error of each candidate published."""
    above = np.cumsum(rows)
    ranks = [float(share) * int(above[-1]) for share in shares]
    pairs = zip(ranks, published.tolist(), strict=True)
    return [max(0.0, float(above[c] - rows[c]) - rank, rank - float(above[c])) for rank, c in pairs]


def permute_and_flip(
    rows: Codes, share: Fraction, epsilon: float, random: np.random.Generator
) -> int:
    """One quantile, where neighbors add or remove one row (T3 of docs/design/mathematics.md).

    Where they replace one, this is called with half of ε.
    """
    a, b = share.numerator, share.denominator
    above = np.cumsum(rows)
    wanted = a * int(above[-1])
    gaps = np.maximum(0, np.maximum(b * (above - rows) - wanted, wanted - b * above))
    # Permute-and-flip is the noisy maximum with exponential noise (Ding et al. 2021).
    noise = random.exponential(size=rows.size)
    return int(np.argmax(noise - gaps * (epsilon / (2 * max(a, b - a)))))


def split(rows: Codes, shares: Shares, epsilon: float, random: np.random.Generator) -> Codes:
    """Each quantile by itself, from its part of ε."""
    part = epsilon / len(shares)
    return np.sort([permute_and_flip(rows, share, part, random) for share in shares])


def recursive(rows: Codes, shares: Shares, epsilon: float, random: np.random.Generator) -> Codes:
    """AQ (Kaplan, Schnapp and Stemmer 2022): the middle quantile, then each side among its rows."""
    levels = math.ceil(math.log2(len(shares) + 1))
    published = np.zeros(len(shares), dtype=np.int64)

    def publish(first: int, last: int, low: int, high: int) -> None:
        """The shares first..last-1, from the rows at candidates low..high-1."""
        if first >= last:
            return
        middle = (first + last) // 2
        below = shares[first - 1] if first else Fraction(0)
        above = shares[last] if last < len(shares) else Fraction(1)
        share = (shares[middle] - below) / (above - below)
        part = rows[low:high] if high > low else rows[low : low + 1]
        drawn = low + permute_and_flip(part, share, epsilon / levels, random)
        published[middle] = drawn
        publish(first, middle, low, drawn + 1)
        publish(middle + 1, last, min(drawn + 1, rows.size - 1), high)

    publish(0, len(shares), 0, rows.size)
    return published


def compared(
    kind: str, quantiles: int, draws: int, *, replaces: bool, candidates: int = 1001
) -> dict[str, float]:
    """Mean rank errors of the three at ε = 1 and 1,000 rows, for quantiles at even shares.

    Each draw has a table of its own. Replacing a row is removing one and adding one: the rivals
    take half of ε for each, and joint quantiles the spread of their theorem.
    """
    random = np.random.default_rng(quantiles)
    shares = tuple(Fraction(j, quantiles + 1) for j in range(1, quantiles + 1))
    joint = JointQuantiles.fitted(Fraction(1), candidates, shares, 1, replaces=replaces)
    epsilon = 0.5 if replaces else 1.0
    errors: dict[str, list[float]] = {"joint": [], "split": [], "recursive": []}
    for _ in range(draws):
        rows = sample(kind, 1000, candidates, random)
        published = {
            "joint": joint.draw(rows[None], random.bytes)[0],
            "split": split(rows, shares, epsilon, random),
            "recursive": recursive(rows, shares, epsilon, random),
        }
        for name, codes in published.items():
            errors[name] += rank_errors(rows, shares, codes)
    return {name: float(np.mean(values)) for name, values in errors.items()}


def sample(kind: str, count: int, candidates: int, random: np.random.Generator) -> Codes:
    """Rows at candidates, drawn evenly or from a lognormal distribution."""
    even = random.uniform(0, candidates, count)
    skewed = candidates / 8 * random.lognormal(0, 0.6, count)
    values = np.clip(even if kind == "even" else skewed, 0, candidates - 1).astype(np.int64)
    return np.bincount(values, minlength=candidates)


def main() -> None:
    """Print the mean rank errors, and those of joint quantiles over those of each rival."""
    for kind in ("even", "skewed"):
        for replaces in (False, True):
            for quantiles in (3, 5, 7, 9):
                errors = compared(kind, quantiles, 250, replaces=replaces)
                joint, apart, recursion = errors.values()
                cells = f"{joint:6.2f} {apart:6.2f} {recursion:6.2f}"
                ratios = f"{joint / apart:.2f} {joint / recursion:.2f}"
                print(kind, replaces, quantiles, cells, ratios, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
