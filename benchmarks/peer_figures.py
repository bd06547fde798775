"""The figures of a table by pycanon and by sqlanon, in the same terms, and how often they are the same."""

from __future__ import annotations

import collections
import functools
import math
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from pycanon import anonymity, metrics

from sqlanon import (
    DistinctLDiversity,
    EntropyLDiversity,
    EqualTCloseness,
    KAnonymity,
    OrderedTCloseness,
    RecursiveLDiversity,
    check_table,
)

warnings.filterwarnings("ignore", module="pycanon")
Figure = float | None
"""None where a program has no figure: it says so, or it fails."""


@dataclass(frozen=True)
class Asked:
    """A table, the same in a data frame and in a database, and which of its columns are what."""

    frame: pd.DataFrame
    url: str
    table: str
    quasi: list[str]
    text: str
    number: str


def _or_none(work: Callable[[], Any]) -> Figure:
    try:
        found = float(work())
    except (ValueError, TypeError, ZeroDivisionError, IndexError):
        return None
    return found if math.isfinite(found) else None


def by_pycanon(asked: Asked) -> dict[str, Figure]:
    """Its figures, in its own words' definitions."""
    frame, quasi, text = asked.frame, asked.quasi, [asked.text]
    work: dict[str, Callable[[], Any]] = {
        "k": lambda: anonymity.k_anonymity(frame, quasi),
        "distinct l": lambda: anonymity.l_diversity(frame, quasi, text),
        "entropy l": lambda: anonymity.entropy_l_diversity(frame, quasi, text),
        "recursive c": lambda: anonymity.recursive_c_l_diversity(frame, quasi, text)[0],
        "alpha": lambda: anonymity.alpha_k_anonymity(frame, quasi, text)[0],
        "t, equal": lambda: anonymity.t_closeness(frame, quasi, text),
        "t, ordered": lambda: anonymity.t_closeness(frame, quasi, [asked.number]),
        "C_AVG": lambda: metrics.average_ecsize(frame, frame, quasi),
        "discernibility": lambda: metrics.discernability_metric(frame, frame, quasi),
        "greatest risk": lambda: metrics.max_rir(frame, quasi),
        "mean risk": lambda: metrics.average_rir(frame, quasi),
    }
    return {name: _or_none(one) for name, one in work.items()}


_distinct, _entropy, _recursive = (
    functools.partial(model, counts_null=True)  # pycanon has a value in its place
    for model in (DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity)
)


def by_sqlanon(asked: Asked) -> dict[str, Figure]:
    """Measure by verification, in pycanon's figures: l of entropy and c as whole numbers, alpha of x1 / rest."""
    quasi, text, number = asked.quasi, asked.text, asked.number
    first = check_table(asked.url, asked.table, quasi, [_distinct(text, 1)])
    least = int(first.models[0].worst or 0)
    models = [
        *(_entropy(text, 1), _recursive(text, 1, least), _recursive(text, 1, 2)),
        *(EqualTCloseness(text, 1), OrderedTCloseness(number, 1)),
    ]
    found = check_table(asked.url, asked.table, quasi, models)
    entropy, recursive, ratio, equal, ordered = (result.worst for result in found.models)
    classes = found.statistics
    return {
        "k": classes.min_class_size,
        "distinct l": least,
        "entropy l": math.floor((entropy or 0) * (1 + 1e-9)),
        "recursive c": math.floor(recursive or 0) + 1 if least > 1 else None,
        "alpha": 1.0 if ratio is None else ratio / (1 + ratio),
        "t, equal": equal,
        "t, ordered": ordered,
        "C_AVG": classes.c_avg(classes.min_class_size),
        "discernibility": classes.discernibility(),
        "greatest risk": classes.prosecutor_max,
        "mean risk": classes.prosecutor_mean,
    }


def from_definitions(asked: Asked) -> dict[str, tuple[Figure, Figure]]:
    """Compute, by a third program, the figures that pycanon and the paper define differently, as each has them."""
    classes = asked.frame.groupby(asked.quasi, dropna=False)
    counts = [sorted(rows[asked.text].value_counts()) for _, rows in classes]
    least = min(len(one) for one in counts)
    rising = max(one[0] / sum(one[least - 1 :]) for one in counts)
    falling = max(one[-1] / sum(one[: len(one) - least + 1]) for one in counts)
    entropy = min(sum(n / sum(one) * math.log(sum(one) / n) for n in one) for one in counts)
    whole = math.floor(math.exp(entropy) * (1 + 1e-9))
    exact = math.isclose(math.exp(entropy), whole, rel_tol=1e-9)
    found: dict[str, tuple[Figure, Figure]] = {
        "entropy l": (whole - 1 if exact else whole, whole),
        "mean risk": (sum(1 / sum(one) for one in counts) / len(counts), len(counts) / len(asked.frame)),
    }
    if least > 1:
        found["recursive c"] = (math.floor(rising + 1), math.floor(falling) + 1)
    if asked.frame[asked.number].nunique() == 1:
        found["t, ordered"] = (None, 0.0)
    return found


def certainty_penalty(shown: pd.DataFrame, hierarchies: dict[str, dict[int, pd.Series]], rows: int) -> float:
    """GCP of a full-domain release of a table of so many rows, from its labels: leaves below each over all leaves."""
    penalty = float((rows - len(shown)) * len(hierarchies))
    for name, levels in hierarchies.items():
        leaves = {label: n for level in levels if level for label, n in levels[level].value_counts().items()}
        penalty += shown[name].map(leaves).fillna(0).sum() / len(levels[0])
    return penalty / rows / len(hierarchies)


def judged(asked: Asked, figures: dict[str, Figure]) -> bool:
    """Tell whether verification finds every model satisfied at its figure, and each violated just beyond it."""
    text, number = asked.text, asked.number
    k, l, c = (int(figures[name] or 0) for name in ("k", "distinct l", "recursive c"))  # noqa: E741
    kept = [KAnonymity(k), _distinct(text, l), _entropy(text, figures["entropy l"] or 1)]
    broken = [
        KAnonymity(k + 1),
        _distinct(text, l + 1),
        _entropy(text, (figures["entropy l"] or 0) + 1),
    ]
    if c:
        kept, broken = [*kept, _recursive(text, c, l)], [*broken, _recursive(text, c - 1, l)]
    for name, model in (("t, equal", EqualTCloseness), ("t, ordered", OrderedTCloseness)):
        column, t = (text if model is EqualTCloseness else number), figures[name] or 0.0
        kept = [*kept, model(column, t)]
        broken = [*broken, model(column, t * (1 - 1e-6))] if t else broken
    results = check_table(asked.url, asked.table, asked.quasi, [*kept, *broken]).models
    return [result.satisfied for result in results] == [True] * len(kept) + [False] * len(broken)


def same(one: Figure, other: Figure) -> bool:
    """Equal to 9 digits, or both without a figure."""
    return one is other or (
        one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    )


def random_frame(draw: random.Random, nulls: bool) -> pd.DataFrame:
    """A small table with one to three quasi-identifiers, a text and a number, both skewed; a tenth NULL if asked."""
    rows, values = draw.randint(2, 60), draw.randint(1, 6)
    columns: dict[str, list[Any]] = {}
    for name in [*(f"q{place}" for place in range(draw.randint(1, 3))), "s", "n"]:
        drawn = [math.floor(values * draw.random() ** 2) for _ in range(rows)]
        columns[name] = [one**2 if name == "n" else f"{name}{one}" for one in drawn]
        if nulls:
            columns[name] = [None if draw.random() < 0.1 else one for one in columns[name]]
    return pd.DataFrame(columns).astype({"n": "Int64"})


def without_nulls(frame: pd.DataFrame) -> pd.DataFrame:
    """NULL as a value of its own, the least, which is what it is to sqlanon."""
    return frame.assign(**{name: frame[name].fillna(-1 if name == "n" else "") for name in frame}).astype({"n": int})


def random_tables(directory: Path, tables: int, nulls: bool) -> Iterator[Asked]:
    """Tables in a database, and as data frames whose NULLs are a value."""
    draw, path = random.Random(2_026 + nulls), directory / f"random-{nulls}.duckdb"
    frames = [random_frame(draw, nulls) for _ in range(tables)]
    with duckdb.connect(str(path)) as connection:
        for place, frame in enumerate(frames):
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE t{place} AS FROM frame")
    for place, frame in enumerate(frames):
        yield Asked(without_nulls(frame), f"duckdb:///{path}", f"t{place}", list(frame)[:-2], "s", "n")


def compare(title: str, tables: Iterator[Asked]) -> None:
    """One line a figure: on how many tables it is the same, and where not whether it is as the definitions tell."""
    told: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    right = total = 0
    for asked in tables:
        theirs, ours, defined = by_pycanon(asked), by_sqlanon(asked), from_definitions(asked)
        for name, figure in ours.items():
            expected = all(map(same, (theirs[name], figure), defined.get(name, (None, None))))
            told[name]["same" if same(theirs[name], figure) else "told" if expected else "open"] += 1
        right, total = right + judged(asked, ours), total + 1
    print(f"\n{title}: {total} tables; judged rightly at each figure and just beyond it: {right}\n")
    print("| figure | the same | differs, as its definition tells | differs otherwise |\n| --- | ---: | ---: | ---: |")
    for name, counts in told.items():
        print(f"| {name} | {counts['same']} | {counts['told']} | {counts['open']} |")
