"""Make the two sample tables: hourly smart-meter readings and census-style persons.

Nobody in these tables exists. Every row is drawn from the models below, whose numbers are
rounded aggregate facts of public data or plain assumptions; no row of any real table is copied.
What the drawn tables look like beside the real ones is measured in `data/README.md`.

Smart-meter readings (`ami_readings.parquet`)
    Source: Low Carbon London smart-meter trial, UK Power Networks, London Datastore, CC BY.
    Level and spread of a home's day: 1.93 million full home-days of 2013 of 5,528 homes.
    Hours: 110,000 full home-days of 2013 of 325 homes with half-hourly readings.
    The profiles, the weekday factors and the shape of the night charge are such facts as they
    stand. The other spreads are set so that the quantiles of the drawn tables meet those of the
    real one (a day's energy, the largest hour, its share of the day, the change from hour to
    hour). The level is that of an average day of the year, which real homes exceed in January.
    The circuits are invented, and so is how they differ.

Persons (`persons.parquet`)
    Source: NIST Diverse Community Excerpts of the 2019 American Community Survey (national, 20
    areas, weighted), a work of the US Government. Ages, sex by age, education by age and
    tenure by age are such facts. Counties, tracts, work and travel are assumptions.

All randomness comes from the raw output of one seeded PCG64, whose stream NumPy keeps for good;
its distribution methods may change between versions. It is fit for samples and never for noise.

    python data/generate.py [--out DIR]
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SEED = 20130104

# --- smart-meter readings -------------------------------------------------------------------

FIRST_DAY = np.datetime64("2013-01-04")
HOMES_PER_CIRCUIT = 118
DAYS, HOURS = 3, 24
# A fuse of 100 A at 240 V.
MOST_WH = 24_000

# Invented; the twelve groups of real homes in `circuits_1416` range from 0.77 to 1.49 in 2013.
CIRCUIT_LEVEL = (1.20, 1.07, 1.00, 0.97, 0.95, 1.02, 0.99, 1.10, 1.03, 0.97, 0.88, 0.82)
# Invented around the real share: of 325 homes, 23 (7%) have their peak at midnight on more than
# one day in ten, and 7 of them on more than one day in two.
CIRCUIT_HEATED = (1, 1, 2, 3, 2, 2, 5, 3, 4, 1, 6, 4)
CIRCUIT_TIMED = (3, 4, 4, 5, 4, 4, 6, 4, 5, 3, 7, 4)
VACANT_SHARE = 0.015

# Mean hour over the day's mean hour, homes with at most 30% of their energy before 7 o'clock.
FRIDAY = (
    *(0.71, 0.59, 0.52, 0.49, 0.51, 0.58, 0.74, 0.97, 1.08, 1.07, 1.00, 1.01),
    *(1.04, 0.99, 0.98, 1.03, 1.14, 1.33, 1.45, 1.47, 1.43, 1.37, 1.19, 0.96),
)
SATURDAY = (
    *(0.76, 0.62, 0.54, 0.50, 0.50, 0.53, 0.64, 0.83, 1.00, 1.08, 1.10, 1.13),
    *(1.16, 1.15, 1.10, 1.13, 1.19, 1.32, 1.43, 1.46, 1.41, 1.31, 1.16, 0.96),
)
SUNDAY = (
    *(0.76, 0.62, 0.54, 0.50, 0.50, 0.53, 0.63, 0.78, 0.98, 1.14, 1.22, 1.25),
    *(1.30, 1.30, 1.24, 1.22, 1.26, 1.42, 1.53, 1.58, 1.54, 1.42, 1.19, 0.93),
)
# Mean energy of a Friday, Saturday and Sunday over that of all days.
DAY_FACTOR = (0.985, 1.01, 1.052)

TYPICAL_DAY_WH = 7_500.0
LEVEL_SPREAD = 0.69
DAY_SPREAD, DAY_SPREAD_VARIES = 0.183, 0.67
# Of a home's usual day: what runs all the time, as a logit over homes.
BASE_LOGIT, BASE_LOGIT_SPREAD = -1.15, 1.4
BASE_IN_PROFILE = 0.40
# The median share of the largest hour is 12.4% in the middle tenths of real home-days by energy
# and 11.1% in the highest tenth: large homes are steadier.
BASE_LOGIT_PER_LEVEL = 0.7
LEAST_ACTIVE_SHARE = 0.08
# Standard deviation of the log of an hour's share: between homes, then between days of a home.
# Hours 5 to 8 differ most between homes, since only some rise early.
HABIT_SPREAD = (
    *(0.51, 0.49, 0.47, 0.46, 0.47, 1.15, 1.15, 1.20, 0.75, 0.34, 0.31, 0.33),
    *(0.33, 0.30, 0.27, 0.31, 0.31, 0.31, 0.31, 0.33, 0.33, 0.33, 0.40, 0.49),
)
HOUR_SPREAD = (
    *(0.63, 0.60, 0.59, 0.59, 0.61, 0.67, 0.74, 0.77, 0.73, 0.72, 0.72, 0.73),
    *(0.73, 0.72, 0.70, 0.68, 0.67, 0.66, 0.64, 0.61, 0.58, 0.57, 0.58, 0.63),
)
HABIT_MEMORY, HOUR_MEMORY = 0.54, 0.48
HOUR_SPREAD_VARIES = 0.2
# Now and then an appliance runs in the small hours.
NIGHT_RUN_CHANCE, NIGHT_RUN_SIZE = 0.014, 3.4

# Storage heating: hours 0 to 6 of the six real homes with most energy at night, as multiples of
# their mean hour, after 0.4 for the level of their daytime is taken away.
CHARGE = (4.5, 3.1, 2.2, 1.4, 1.0, 0.8, 0.9)
HEATED_LEVEL, HEATED_LEVEL_SPREAD = 1.7, 0.5
HEATED_SHARE_LOW, HEATED_SHARE_HIGH = 0.2, 0.45
TIMER_START = (0, 1, 2, 3, 4, 5, 6, 23)
TIMER_START_SHARE = (0.36, 0.20, 0.06, 0.08, 0.06, 0.08, 0.09, 0.07)
TIMED_SHARE_LOW, TIMED_SHARE_HIGH = 0.15, 0.45
VACANT_DAY_WH, VACANT_SPREAD, SWITCHED_OFF = 350.0, 0.9, 0.4

# Lengths of the gaps, one home each. Of the real home-days 0.19% lack at least one hour.
GAP_HOURS = (1, 1, 1, 2, 2, 3, 4, 9)

# --- persons --------------------------------------------------------------------------------

PERSONS = 24_000
OLDEST = 99

# Percent of persons in each five years of age, 0-4 to 95-99.
AGE_PERCENT = (
    *(6.2, 5.6, 6.0, 6.5, 7.9, 8.4, 7.6, 6.6, 6.0, 5.8),
    *(5.8, 6.0, 6.2, 5.0, 3.7, 2.9, 2.0, 1.2, 0.55, 0.1),
)
FEMALE_FROM = (0, 40, 65, 80)
FEMALE_SHARE = (0.495, 0.52, 0.545, 0.625)

EDUCATION = ("none", "school", "vocational", "bachelor", "master_plus")
EDUCATION_FROM = (0, 15, 18, 20, 25, 35, 50, 65, 75)
EDUCATION_PERCENT = (
    (100.0, 0.0, 0.0, 0.0, 0.0),
    (96.8, 3.2, 0.0, 0.0, 0.0),
    (18.8, 80.5, 0.6, 0.1, 0.0),
    (6.6, 64.6, 4.4, 21.7, 2.7),
    (8.0, 38.0, 6.8, 29.8, 17.4),
    (10.6, 37.8, 6.3, 21.1, 24.2),
    (11.8, 44.5, 7.1, 18.0, 18.5),
    (12.2, 41.5, 6.2, 18.6, 21.6),
    (18.7, 42.6, 4.3, 14.7, 19.7),
)
# How strongly a tract's schooling moves each level, in logs.
EDUCATION_PULL = (-0.5, 0.0, 0.2, 0.8, 1.0)

TENURE = ("owner", "renter", "other")
TENURE_FROM = (0, 18, 25, 35, 50, 65, 75)
TENURE_PERCENT = (
    (49.3, 50.2, 0.6),
    (26.2, 55.7, 18.1),
    (32.7, 64.6, 2.7),
    (51.0, 46.7, 2.3),
    (62.1, 35.5, 2.4),
    (67.9, 30.4, 1.8),
    (68.7, 27.0, 4.2),
)
TENURE_PULL = (0.5, -0.5, 0.0)

COMMUTE = ("car", "transit", "bike", "walk", "home", "none")
WORK_FROM = (0, 16, 18, 25, 50, 65, 75)
WORK_SHARE = (0.0, 0.2, 0.58, 0.8, 0.72, 0.25, 0.06)
# Working at home is commoner with each level of education.
HOME_PULL = (-0.8, -0.5, -0.2, 0.4, 0.6)
MINUTES_SPREAD = 0.5
MOST_MINUTES = 150
ROUNDED_TO_FIVE = 0.8


@dataclass(frozen=True)
class TractKind:
    """What tracts of one kind share; all of it assumed."""

    # Weight of ages 0-17, 18-34, 35-64 and 65 or more against the whole population.
    ages: tuple[float, float, float, float]
    # Logs: above 0 means more owners, and more years of schooling, than usual.
    owning: float
    schooling: float
    # Percent of workers by car, transit, bike, on foot, at home.
    modes: tuple[float, float, float, float, float]
    # Median minutes by the same modes.
    minutes: tuple[float, float, float, float, float]


CENTRE = TractKind((0.5, 1.9, 0.8, 0.6), -1.6, 0.5, (24, 38, 11, 19, 8), (20, 28, 15, 12, 0))
CITY = TractKind((1.0, 1.1, 1.0, 0.9), -0.5, -0.2, (50, 32, 5, 8, 5), (23, 36, 18, 12, 0))
SUBURB = TractKind((1.15, 0.7, 1.1, 1.15), 1.1, 0.4, (74, 13, 2, 2, 9), (27, 46, 19, 11, 0))
TOWN = TractKind((1.0, 0.95, 1.0, 1.1), 0.1, -0.2, (72, 8, 4, 10, 6), (20, 40, 14, 11, 0))
RURAL = TractKind((1.0, 0.75, 1.05, 1.35), 0.8, -0.5, (87, 2, 1, 4, 6), (30, 55, 16, 9, 0))

TRACT_KINDS = (
    *(CENTRE, CENTRE, CENTRE, CITY, CITY, CITY, CITY, CITY, SUBURB, SUBURB),
    *(CENTRE, CITY, SUBURB, SUBURB, SUBURB, SUBURB, SUBURB, SUBURB),
    *(TOWN, RURAL, RURAL, RURAL, RURAL, RURAL),
)
TRACTS_PER_COUNTY = (10, 8, 6)
SIZE_SPREAD, OWNING_SPREAD, SCHOOLING_SPREAD, AGES_SPREAD = 0.25, 0.35, 0.3, 0.12


class Draws:
    """Random numbers from the raw 64-bit words of one seeded generator."""

    def __init__(self, seed: int) -> None:
        self._words = np.random.PCG64(seed)

    def uniform(self, *shape: int) -> Floats:
        """Return numbers in [0, 1) with 53 random bits each."""
        words = self._words.random_raw(math.prod(shape)) >> np.uint64(11)
        return (words.astype(np.float64) * 2.0**-53).reshape(shape)

    def normal(self, *shape: int) -> Floats:
        """Return standard normal numbers (Box and Muller)."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(*shape)))
        return np.asarray(radius * np.cos(2.0 * math.pi * self.uniform(*shape)))

    def remembering(self, memory: float, *shape: int) -> Floats:
        """Return standard normal numbers, neighbors in the last axis correlated by `memory`."""
        steps = self.normal(*shape)
        for k in range(1, shape[-1]):
            fresh = math.sqrt(1.0 - memory**2) * steps[..., k]
            steps[..., k] = memory * steps[..., k - 1] + fresh
        return steps

    def pick(self, weights: Floats) -> Integers:
        """Return one column per row of `weights` (n, k), in proportion to the row's weights."""
        edges = np.cumsum(weights, axis=1)
        marks = self.uniform(len(weights)) * edges[:, -1]
        chosen: Integers = (marks[:, None] >= edges).sum(axis=1).astype(np.int64)
        return np.asarray(np.minimum(chosen, weights.shape[1] - 1))

    def order(self, n: int) -> Integers:
        """Return 0..n-1 shuffled."""
        return np.argsort(self.uniform(n), kind="stable").astype(np.int64)


def spread(normal: Floats, by: Floats | float) -> Floats:
    """Return log-normal factors with mean 1: exp(by * normal - by**2 / 2)."""
    by = np.asarray(by, dtype=np.float64)
    return np.asarray(np.exp(by * normal - by**2 / 2.0))


def shares(weights: Floats) -> Floats:
    """Return `weights` scaled so that the last axis sums to 1."""
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class Homes:
    """One entry per home, in order of circuit."""

    circuit: Integers
    heated: npt.NDArray[np.bool_]
    timed: npt.NDArray[np.bool_]
    # Wh of a usual day.
    level: Floats


def draw_homes(draws: Draws) -> Homes:
    """Settle each circuit's heated and timed homes, then every home's level."""
    circuit = np.repeat(np.arange(len(CIRCUIT_LEVEL)), HOMES_PER_CIRCUIT)
    n = len(circuit)
    # The place of a home in its circuit's shuffled list says whether it heats or times.
    place = np.concatenate([draws.order(HOMES_PER_CIRCUIT) for _ in CIRCUIT_LEVEL])
    heated_until = np.array(CIRCUIT_HEATED)[circuit]
    heated = place < heated_until
    timed = ~heated & (place < heated_until + np.array(CIRCUIT_TIMED)[circuit])
    vacant = ~heated & ~timed & (draws.uniform(n) < VACANT_SHARE)
    off = vacant & (draws.uniform(n) < SWITCHED_OFF)

    deviation = draws.normal(n)
    usual = TYPICAL_DAY_WH * np.exp(LEVEL_SPREAD * deviation)
    warm = TYPICAL_DAY_WH * HEATED_LEVEL * np.exp(HEATED_LEVEL_SPREAD * deviation)
    idle = VACANT_DAY_WH * np.exp(VACANT_SPREAD * deviation)
    level = np.where(heated, warm, usual) * np.array(CIRCUIT_LEVEL)[circuit]
    level = np.where(off, 0.0, np.where(vacant, idle, level))
    return Homes(circuit, heated, timed, level)


def draw_days(draws: Draws, homes: Homes) -> Floats:
    """Return each home's energy of each day in Wh (homes, days)."""
    n = len(homes.level)
    varies = DAY_SPREAD * np.exp(DAY_SPREAD_VARIES * draws.normal(n))
    moved = np.clip(varies[:, None] * draws.normal(n, DAYS), -2.0, 1.0)
    return np.asarray(homes.level[:, None] * np.exp(moved) * np.array(DAY_FACTOR))


def draw_activity(draws: Draws, n: int) -> Floats:
    """Return how the energy beyond the base falls on the hours (homes, days, hours), sum 1."""
    profile = np.array([FRIDAY, SATURDAY, SUNDAY])
    profile = profile / profile.mean(axis=1, keepdims=True)
    active = np.maximum((profile - BASE_IN_PROFILE) / (1.0 - BASE_IN_PROFILE), 0.1)
    habit = spread(draws.remembering(HABIT_MEMORY, n, 1, HOURS), np.array(HABIT_SPREAD))
    restless = np.exp(HOUR_SPREAD_VARIES * draws.normal(n))[:, None, None]
    hour = spread(draws.remembering(HOUR_MEMORY, n, DAYS, HOURS), restless * np.array(HOUR_SPREAD))
    runs = (draws.uniform(n, DAYS, HOURS) < NIGHT_RUN_CHANCE) & (np.arange(HOURS) < 7)
    size = NIGHT_RUN_SIZE * np.exp(0.4 * draws.normal(n, DAYS, HOURS))
    return shares(active * habit * hour + np.where(runs, size, 0.0))


def draw_night(draws: Draws, homes: Homes) -> Floats:
    """Return the share of the day that heating or a timer puts on each hour (homes, hours)."""
    n = len(homes.level)
    hours = np.arange(HOURS)
    charge = np.zeros(HOURS)
    charge[: len(CHARGE)] = CHARGE
    steeper = (0.6 + 0.8 * draws.uniform(n))[:, None]
    heating = shares(charge**steeper * (charge > 0))
    late = draws.uniform(n) < 0.12
    heating = np.where(late[:, None], np.roll(heating, 1, axis=1), heating)

    start = np.array(TIMER_START)[draws.pick(np.tile(TIMER_START_SHARE, (n, 1)))]
    since = (hours - start[:, None]) % HOURS
    lasts = 1 + np.floor(3.0 * draws.uniform(n)).astype(np.int64)
    timer = shares(np.where(since < lasts[:, None], 0.6**since, 0.0))

    part = draws.uniform(n)
    heated = HEATED_SHARE_LOW + (HEATED_SHARE_HIGH - HEATED_SHARE_LOW) * part
    timed = TIMED_SHARE_LOW + (TIMED_SHARE_HIGH - TIMED_SHARE_LOW) * part
    return np.asarray(
        np.where(homes.heated, heated, 0.0)[:, None] * heating
        + np.where(homes.timed, timed, 0.0)[:, None] * timer
    )


def draw_hours(draws: Draws, homes: Homes) -> Integers:
    """Return each home's energy of each hour in Wh (homes, days, hours)."""
    n = len(homes.level)
    energy = draw_days(draws, homes)
    larger = np.log(np.maximum(homes.level / TYPICAL_DAY_WH, 1.0))
    logit = BASE_LOGIT + BASE_LOGIT_PER_LEVEL * larger + BASE_LOGIT_SPREAD * draws.normal(n)
    base = 1.0 / (1.0 + np.exp(-logit))
    # The base is the same Wh on every day, so that a day away from home is a flat one.
    active = np.maximum(energy - (base * homes.level)[:, None], LEAST_ACTIVE_SHARE * energy)
    flat = (energy - active) / HOURS
    day = flat[:, :, None] + active[:, :, None] * draw_activity(draws, n)
    night = draw_night(draws, homes)[:, None, :]
    charged = night * np.exp(0.1 * draws.normal(n, DAYS, HOURS))
    wh = (1.0 - night.sum(axis=-1, keepdims=True)) * day + charged * energy[:, :, None]
    return np.asarray(np.minimum(np.rint(wh), MOST_WH), dtype=np.int64)


def present_hours(draws: Draws, n: int) -> npt.NDArray[np.bool_]:
    """Return which hours were received (homes, days, hours); a gap lies within one day."""
    present = np.ones((n, DAYS, HOURS), dtype=np.bool_)
    for home, length in zip(draws.order(n), GAP_HOURS, strict=False):
        day = int(DAYS * draws.uniform(1)[0])
        first = int((HOURS - length + 1) * draws.uniform(1)[0])
        present[home, day, first : first + length] = False
    return present


def ami_readings(seed: int = SEED) -> pa.Table:
    """Return the table of readings, sorted by home, day and hour."""
    draws = Draws(seed)
    homes = draw_homes(draws)
    wh = draw_hours(draws, homes)
    home, day, hour = np.nonzero(present_hours(draws, len(homes.level)))
    columns = {
        "household_id": pa.array([f"h{k + 1:04d}" for k in home], pa.string()),
        "circuit": pa.array([f"c{c:02d}" for c in homes.circuit[home]], pa.string()),
        "day": pa.array(FIRST_DAY + day, pa.date32()),
        "hour": pa.array(hour, pa.int32()),
        "wh": pa.array(wh[home, day, hour], pa.int32()),
    }
    return pa.table(columns)


def banded(ages: Integers, starts: tuple[int, ...], rows: npt.ArrayLike) -> Floats:
    """Return for every age the row of the band it lies in; bands begin at `starts`."""
    found: Floats = np.asarray(rows, dtype=np.float64)
    return np.asarray(found[np.searchsorted(np.array(starts), ages, side="right") - 1])


def draw_sizes(draws: Draws) -> Integers:
    """Return the number of persons of each tract, summing to `PERSONS`."""
    weight = shares(np.exp(SIZE_SPREAD * draws.normal(len(TRACT_KINDS))))
    edges = np.rint(np.concatenate([[0.0], np.cumsum(weight)]) * PERSONS).astype(np.int64)
    return np.asarray(np.diff(edges))


def draw_ages(draws: Draws, tract: Integers) -> Integers:
    """Return ages in whole years: the common pyramid, tilted by the tract's kind."""
    years = np.arange(OLDEST + 1)
    middles = np.arange(len(AGE_PERCENT)) * 5.0 + 2.0
    pyramid = np.interp(years, middles, AGE_PERCENT)
    stage = np.searchsorted(np.array([18, 35, 65]), years, side="right")
    tilt = np.array([kind.ages for kind in TRACT_KINDS])
    tilt = tilt * np.exp(AGES_SPREAD * draws.normal(*tilt.shape))
    return draws.pick((pyramid * tilt[:, stage])[tract])


def draw_leaning(draws: Draws, typical: list[float], by: float) -> Floats:
    """Return one leaning per tract: its kind's typical value and the tract's own deviation."""
    return np.asarray(np.array(typical) + by * draws.normal(len(typical)))


def draw_commute(
    draws: Draws, tract: Integers, age: Integers, education: Integers
) -> tuple[Integers, Integers]:
    """Return the index of the mode and the minutes of one way (0 at home or without work)."""
    n = len(tract)
    modes = np.array([kind.modes for kind in TRACT_KINDS], dtype=np.float64)[tract]
    modes[:, COMMUTE.index("home")] *= np.exp(np.array(HOME_PULL))[education]
    works = draws.uniform(n) < banded(age, WORK_FROM, WORK_SHARE)
    mode = np.where(works, draws.pick(modes), COMMUTE.index("none"))

    medians = np.array([(*kind.minutes, 0.0) for kind in TRACT_KINDS])
    exact = medians[tract, mode] * np.exp(MINUTES_SPREAD * draws.normal(n))
    # People answer in fives.
    step = np.where(draws.uniform(n) < ROUNDED_TO_FIVE, 5.0, 1.0)
    minutes = np.clip(np.rint(exact / step) * step, step, MOST_MINUTES)
    travels = mode < COMMUTE.index("home")
    return mode, np.where(travels, minutes, 0.0).astype(np.int64)


def persons(seed: int = SEED + 1) -> pa.Table:
    """Return the table of persons, tract by tract, sorted by person."""
    draws = Draws(seed)
    tract = np.repeat(np.arange(len(TRACT_KINDS)), draw_sizes(draws))
    county = np.repeat(np.arange(len(TRACTS_PER_COUNTY)), TRACTS_PER_COUNTY)[tract]
    age = draw_ages(draws, tract)
    female = draws.uniform(len(tract)) < banded(age, FEMALE_FROM, FEMALE_SHARE)

    schooling = draw_leaning(draws, [kind.schooling for kind in TRACT_KINDS], SCHOOLING_SPREAD)
    pull = np.exp(schooling[tract][:, None] * np.array(EDUCATION_PULL))
    education = draws.pick(banded(age, EDUCATION_FROM, EDUCATION_PERCENT) * pull)
    owning = draw_leaning(draws, [kind.owning for kind in TRACT_KINDS], OWNING_SPREAD)
    pull = np.exp(owning[tract][:, None] * np.array(TENURE_PULL))
    tenure = draws.pick(banded(age, TENURE_FROM, TENURE_PERCENT) * pull)
    mode, minutes = draw_commute(draws, tract, age, education)
    columns = {
        "person_id": pa.array([f"p{k + 1:05d}" for k in range(len(tract))], pa.string()),
        "county": pa.array([f"k{c + 1}" for c in county], pa.string()),
        "tract": pa.array([f"t{t + 1:02d}" for t in tract], pa.string()),
        "sex": pa.array(np.where(female, "f", "m").tolist(), pa.string()),
        "age": pa.array(age, pa.int32()),
        "education": pa.array([EDUCATION[k] for k in education], pa.string()),
        "tenure": pa.array([TENURE[k] for k in tenure], pa.string()),
        "commute": pa.array([COMMUTE[k] for k in mode], pa.string()),
        "travel_minutes": pa.array(minutes, pa.int32()),
    }
    return pa.table(columns)


def write(folder: Path) -> None:
    """Write both tables into `folder`, which must exist; files of these names are replaced."""
    for name, table in (("ami_readings", ami_readings()), ("persons", persons())):
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")


def main() -> None:
    """Read the command line and write the tables."""
    parser = argparse.ArgumentParser(description="Write the sample tables as Parquet files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, metavar="DIR")
    write(parser.parse_args().out)


if __name__ == "__main__":
    main()
