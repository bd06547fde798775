"""Plans of randomized releases: a policy resolved against its table, every column with the change that it will get."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import DataError, PolicyError
from sqlanon.methods.randomization.columns.categories import RandomizedCategory, SwappedColumn
from sqlanon.methods.randomization.columns.column import RandomizedColumn
from sqlanon.methods.randomization.columns.numbers import RandomizedNumber, UncertainColumn
from sqlanon.methods.randomization.columns.plan_columns import Drawn, randomize_column, type_problems
from sqlanon.methods.randomization.policy import ColumnChange, RandomizationParameters, randomization_of
from sqlanon.models.randomization.changes import RandomChange
from sqlanon.plan.drawn_plan import DrawnPlan, column_problems, find_places, is_released
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy, Role
from sqlanon.policy.document import path_text
from sqlanon.sql import Relation
from sqlanon.support.suggest import quoted
from sqlanon.work.publish.companion import NOISE, companion_problems

_ALTERED = (
    "{place}: a declared value (values, or the matrix) would not be released as it is written, by a column of type"
    " {type}; write it as the column shows it (7 for 007), or leave it out."
)


@dataclass(frozen=True)
class RandomizedPlan(DrawnPlan):
    """Everything that a run needs to know to randomize columns.

    columns: of the source, those that are released, in its order. randomized: those of them that are changed, by name.
    """

    rows: int
    columns: tuple[Column, ...]
    randomized: dict[str, RandomizedColumn]
    warnings: tuple[str, ...]

    @property
    def released(self) -> list[Column]:
        """The columns of the release: those of the source, an uncertain one with the sizes of its noise behind it."""
        spreads = {name: one.spread for name, one in self.uncertain.items()}
        return [part for one in self.columns for part in (one, spreads.get(one.name)) if part is not None]

    @property
    def kept(self) -> list[Column]:
        """The columns whose values are released as they are."""
        return [column for column in self.columns if column.name not in self.randomized]

    @property
    def numbers(self) -> dict[str, RandomizedNumber]:
        """The randomized columns of numbers with noise, by name."""
        return {name: one for name, one in self.randomized.items() if isinstance(one, RandomizedNumber)}

    @property
    def categories(self) -> dict[str, RandomizedCategory]:
        """The randomized columns of categories that become others, by name."""
        return {name: one for name, one in self.randomized.items() if isinstance(one, RandomizedCategory)}

    @property
    def drawn(self) -> list[Drawn]:
        """The columns whose values are drawn anew, numbers first."""
        return [*self.numbers.values(), *self.categories.values()]

    @property
    def swapped(self) -> dict[str, SwappedColumn]:
        """The columns whose values are exchanged between rows, by name."""
        return {name: one for name, one in self.randomized.items() if isinstance(one, SwappedColumn)}

    @property
    def uncertain(self) -> dict[str, UncertainColumn]:
        """The columns of numbers with noise of sizes of their own, by name."""
        return {name: one for name, one in self.randomized.items() if isinstance(one, UncertainColumn)}

    @property
    def changes(self) -> list[RandomChange]:
        """The changes of all randomized columns, in the source's order."""
        return [one.change for one in self.randomized.values()]

    @property
    def epsilon(self) -> float | None:
        """The local differential privacy of a row; None where a column has none."""
        losses = [change.epsilon for change in self.changes]
        known = [loss for loss in losses if loss is not None]
        return math.fsum(known) if len(known) == len(losses) else None


def resolve_randomized(policy: Policy, engine: Engine, *, replace: bool = False) -> RandomizedPlan:
    """Resolve a policy that randomizes columns; the values of these are looked at in one scan.

    Raises one PolicyError with every problem; AccessError where the source may not be read.
    """
    source, release, problems = find_places(policy, engine, replace)
    with engine.transaction():
        hold_trusted(policy, engine, source)
        columns = engine.columns(source)
        problems += column_problems(policy, columns, str(source))
        problems += map(str, companion_problems(engine, release, replace, NOISE))
        released = [one for one in columns if is_released(policy, one)]
        wanted = randomization_of(policy).columns
        changing = [(one, wanted[one.name]) for one in released if one.name in wanted]
        problems += [problem for column, asked in changing for problem in type_problems(column, asked)]
        if problems:
            raise PolicyError(problems)
        randomized = _randomize(changing)
        _require_values(engine, randomized)
        rows, figures = _measure(engine, source, randomized)
    problems = [] if rows else [f"{source} holds no rows."]
    problems += _name_problems(released, randomized, engine.traits.longest_name)
    for name, one in randomized.items():
        texts = one.value_problems(rows, figures.get(name, ()))
        problems += [f"{path_text(('attributes', name))}: {text}" for text in texts]
    plan = RandomizedPlan(policy, source, release, rows, tuple(released), randomized, ())
    problems += _epsilon_problems(plan)
    if problems:
        raise PolicyError(problems)
    return RandomizedPlan(policy, source, release, rows, tuple(released), randomized, tuple(_warnings(plan)))


def _randomize(changing: Sequence[tuple[Column, ColumnChange]]) -> dict[str, RandomizedColumn]:
    """Give each column its change; one PolicyError has the problems of all."""
    randomized: dict[str, RandomizedColumn] = {}
    problems: list[str] = []
    for column, asked in changing:
        try:
            randomized[column.name] = randomize_column(column, asked)
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)
    return randomized


def _require_values(engine: Engine, randomized: Mapping[str, RandomizedColumn]) -> None:
    """Raise PolicyError where a column can't hold a declared value as it is written, so that others were released."""
    problems: list[str] = []
    for one in randomized.values():
        if not isinstance(one, RandomizedCategory):
            continue
        place = path_text(("algorithm", "columns", one.column.name))
        try:
            (altered,) = engine.query_one("methods/randomization/count_altered", **one.cast_back(engine))
        except DataError:  # the transaction has ended, and with it the search for more
            raise PolicyError([*problems, _ALTERED.format(place=place, type=one.column.type)]) from None
        if altered:
            problems.append(_ALTERED.format(place=place, type=one.column.type))
    if problems:
        raise PolicyError(problems)


def _measure(
    engine: Engine, source: Relation, randomized: Mapping[str, RandomizedColumn]
) -> tuple[int, dict[str, Sequence[Any]]]:
    """Count rows, and of each randomized column the values that are NULL, no numbers, or not declared; one scan."""
    described = {name: one.measured(engine) for name, one in randomized.items()}
    measured = {name: one for name, one in described.items() if one is not None}
    rows, *figures = engine.query_one(
        "methods/randomization/measure_columns", source=source, columns=list(measured.values())
    )
    five = zip(*[iter(figures)] * 5, strict=True)
    return int(rows), dict(zip(measured, five, strict=True))


def _name_problems(
    released: Sequence[Column], randomized: Mapping[str, RandomizedColumn], longest: int | None
) -> Iterator[str]:
    """Name columns of the source whose names those of sizes of noise need, and those whose sizes can't have a name.

    longest: bytes of a name; None for any number.
    """
    names = {column.name.lower(): column.name for column in released}
    for one in randomized.values():
        if not isinstance(one, UncertainColumn):
            continue
        size = one.spread.name
        if size.lower() in names:
            yield (
                f"{path_text(('attributes', names[size.lower()]))}: the release has the sizes of the noise"
                f" of {quoted([one.column.name])[0]} in a column of this name; rename the column in a view."
            )
        if longest is not None and len(size.encode()) > longest:
            yield (
                f"{path_text(('attributes', one.column.name))}: '{size}', the column of the sizes of its noise in the"
                f" release, is longer than {longest} bytes; rename the column in a view."
            )


def _epsilon_problems(plan: RandomizedPlan) -> Iterator[str]:
    (asked,) = plan.policy.privacy
    assert isinstance(asked, RandomizationParameters)
    if asked.epsilon is None:
        return
    without = [change.column for change in plan.changes if change.epsilon is None]
    if without:
        yield f"privacy[0].epsilon: the change of {', '.join(quoted(without))} has no epsilon; leave this key out."
    elif plan.epsilon is not None and plan.epsilon > asked.epsilon * (1 + 1e-12):
        yield f"privacy[0].epsilon: the columns have {plan.epsilon:g} together, and {asked.epsilon:g} is asked for."


def _warnings(plan: RandomizedPlan) -> Iterator[str]:
    numbers = [*plan.numbers, *plan.uncertain]
    if numbers:
        yield (
            f"Noise hides little of outliers: whoever is far from all others in {', '.join(quoted(numbers))} still is"
            " with noise. Limit such values in a view before."
        )
    if len(numbers) > 1:
        yield (
            f"Noise of {', '.join(quoted(numbers))} is drawn apart: where these columns depend on each other, a filter"
            " takes a part of it away again; `sqlanon loss POLICY` measures how much."
        )
    if plan.uncertain:
        yield (
            f"{', '.join(quoted(list(plan.uncertain)))}: k rows are expected to fit a number by itself; whoever knows"
            " other columns of a row too may see that fewer fit. Sizes of noise tell how far apart neighbours are."
        )
    for name, one in plan.swapped.items():
        yield (
            f"{quoted([name])[0]}: {1 - one.change.share:.4g} of its values stay in their rows, and every one is"
            " somebody's: a swap makes links uncertain, and hides no value."
        )
    sensitive = [one.name for one in plan.kept if plan.policy.attributes[one.name].role is Role.SENSITIVE]
    if sensitive:
        yield f"{', '.join(quoted(sensitive))}: sensitive, and released as it is."
    if plan.epsilon is None:
        yield (
            "No epsilon bounds what a row tells of its person: gaussian and uniform noise, uncertain values, swaps,"
            " and matrices with a 0 beside other probabilities have none."
        )
    elif plan.epsilon > 10:
        yield f"epsilon {plan.epsilon:g} of a row promises next to nothing: 1 or less is usual."
