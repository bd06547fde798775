"""Plans of randomized releases: a policy resolved against its table, every column with the change that it will get."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.models.randomization.changes import AddedNoise, RandomChange, Response
from sqlanon.models.randomization.draws import Draws, kept_or_moved, laplace_of, noise_draws, privacy_loss, widest_limit
from sqlanon.models.randomization.noise import DISTRIBUTIONS, NoiseDistribution
from sqlanon.plan.drawn_plan import DrawnPlan
from sqlanon.plan.lookup import unknown_table
from sqlanon.plan.plan import find_release, find_source
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import ColumnNoise, Policy, RandomizedResponse, Role
from sqlanon.policy.document import path_text
from sqlanon.policy.privacy import RandomizationParameters
from sqlanon.policy.randomized import randomization_of
from sqlanon.sql import Identifier, RedactedValue, Relation
from sqlanon.support.suggest import did_you_mean, quoted
from sqlanon.values.expressions import is_single, text_of
from sqlanon.work.publish.companion import NOISE, companion_problems

_UNIT_BITS = 20  # of the size of noise, in units of a column of floats
_MOST_UNITS = 2.0**51  # of a number and its noise, which doubles count exactly
_MOST_NOISE = 2.0**39  # of the size of noise, in units: a segment is 2^32 wide at most then
_MOST_DECIMALS = 9
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 62}
_CATEGORIES = (Kind.TEXT, Kind.ENUM, Kind.BOOLEAN, Kind.INTEGER)


@dataclass(frozen=True)
class RandomizedNumber:
    """A column of numbers with its noise.

    unit, decimals: of released numbers, which are whole multiples of the unit; decimals are those of a decimal type.
    draws: of the noise in units. limits: the least and the greatest released number in units; None for any.
    """

    column: Column
    change: AddedNoise
    draws: Draws
    limits: tuple[int, int] | None

    @property
    def decimals(self) -> int:
        return self.column.decimals or 0


@dataclass(frozen=True)
class RandomizedCategory:
    """A column of categories with its responses.

    draws: of the places by which the released value is farther on than the true one in the list of values, whose
    last one is followed by the first.
    """

    column: Column
    change: Response
    draws: Draws


Randomized = RandomizedNumber | RandomizedCategory


@dataclass(frozen=True)
class RandomizedPlan(DrawnPlan):
    """Everything that a run needs to know to randomize columns.

    columns: of the release, in the source's order. randomized: those of them that are changed, by name.
    ranges: the least and the greatest number of randomized columns of numbers, as the source has them.
    """

    rows: int
    columns: tuple[Column, ...]
    randomized: dict[str, Randomized]
    warnings: tuple[str, ...]

    @property
    def kept(self) -> list[Column]:
        """The columns whose values are released as they are."""
        return [column for column in self.columns if column.name not in self.randomized]

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
    source = find_source(policy, engine)
    if source is None:
        raise PolicyError(f"source.table: {unknown_table(engine, policy.source.table or '')}")
    release, errors = find_release(policy, source, engine, replace)
    with engine.transaction():
        hold_trusted(policy, engine, source)
        columns = engine.columns(source)
        problems = [*map(str, errors), *_column_problems(policy, columns, str(source))]
        problems += map(str, companion_problems(engine, release, replace, NOISE))
        released = [one for one in columns if one.name in policy.attributes and _is_released(policy, one)]
        wanted = randomization_of(policy).columns
        changing = [(one, wanted[one.name]) for one in released if one.name in wanted]
        problems += [problem for column, asked in changing for problem in _type_problems(column, asked)]
        if problems:
            raise PolicyError(problems)
        rows, figures = _measure(engine, source, changing)
    randomized = {column.name: _randomize(column, asked) for column, asked in changing}
    problems = [] if rows else [f"{source} holds no rows."]
    for name, one in randomized.items():
        problems += [f"{path_text(('attributes', name))}: {text}" for text in _value_problems(one, figures[name])]
    plan = RandomizedPlan(policy, source, release, rows, tuple(released), randomized, ())
    problems += _epsilon_problems(plan)
    if problems:
        raise PolicyError(problems)
    return RandomizedPlan(policy, source, release, rows, tuple(released), randomized, tuple(_warnings(plan)))


def _is_released(policy: Policy, column: Column) -> bool:
    return policy.attributes[column.name].role is not Role.IDENTIFIER


def _column_problems(policy: Policy, columns: Sequence[Column], table: str) -> Iterator[str]:
    names = [column.name for column in columns]
    for name in policy.attributes:
        if name not in names:
            yield f"{path_text(('attributes', name))}: {table} has no such column; {did_you_mean(name, names)}"
    missing = [name for name in names if name not in policy.attributes]
    if missing:
        yield f"{table} has columns without a role: {', '.join(quoted(missing))}. Every column needs one."
    for column in columns:
        attribute = policy.attributes.get(column.name)
        if attribute is not None and attribute.role is not Role.IDENTIFIER and column.kind is Kind.OTHER:
            yield (
                f"{path_text(('attributes', column.name))}: rows with values of type {column.type} can't be told apart"
                " and put in order; cast the column in a view, or leave it out (role: identifier)."
            )


def _type_problems(column: Column, asked: ColumnNoise | RandomizedResponse) -> Iterator[str]:
    place = path_text(("algorithm", "columns", column.name))
    if isinstance(asked, RandomizedResponse):
        if column.kind not in _CATEGORIES:
            yield f"{place}: response is for texts, whole numbers and truth values, and the column is {column.type}."
        return
    if not column.kind.is_numeric or (column.kind is Kind.INTEGER and _bits(column) is None):
        yield f"{place}: noise is added to numbers, and the column is {column.type}; cast it in a view."
        return
    if column.kind is Kind.DECIMAL and (column.decimals is None or column.decimals > _MOST_DECIMALS):
        yield (
            f"{place}: the column is {column.type}, and noise needs a number of decimals, {_MOST_DECIMALS} at most;"
            " cast it in a view, to NUMERIC(18, 2) or the like."
        )
        return
    size, unit = _size(asked), _unit(column, asked)
    if size > unit * _MOST_NOISE:
        yield (
            f"{place}: noise of size {size:g} is more than {_MOST_NOISE:g} multiples of {unit:g}; ask for less, or cast"
            " the column to fewer decimals, or divide it, in a view."
        )
    if size < unit:
        yield (
            f"{place}: noise of size {size:g} mostly rounds to nothing in a column whose values are multiples of"
            f" {unit:g}, so that true values would be published; ask for more, {unit:g} at least."
        )


def _bits(column: Column) -> int | None:
    return _BITS.get(re.sub(r"\W.*", "", column.type.upper()))


def _size(asked: ColumnNoise) -> float:
    """Tell the size of noise in the unit of the column; of Laplace noise by an epsilon, about so."""
    return _distribution(asked).size


def _distribution(asked: ColumnNoise) -> NoiseDistribution:
    kind = DISTRIBUTIONS[asked.noise]
    if asked.interval_privacy is not None:
        assert asked.range is not None
        width = asked.interval_privacy * (asked.range[1] - asked.range[0])
        return kind.of_width(width, asked.confidence or 0.95)
    if asked.epsilon is not None:
        assert asked.range is not None
        return kind((asked.range[1] - asked.range[0]) / asked.epsilon)
    size = asked.deviation or asked.half_width or asked.scale
    assert size is not None
    return kind(size)


def _unit(column: Column, asked: ColumnNoise) -> float:
    """The least difference of two released numbers of a column."""
    if column.kind is Kind.FLOAT:
        return math.ldexp(1.0, math.frexp(_size(asked))[1] - 1 - _UNIT_BITS)
    return 10.0 ** -(column.decimals or 0)


def _randomize(column: Column, asked: ColumnNoise | RandomizedResponse) -> Randomized:
    """Give a column the change that the policy asks for."""
    if isinstance(asked, RandomizedResponse):
        response = Response(column.name, asked.values, asked.epsilon)
        return RandomizedCategory(column, response, kept_or_moved(response.kept, len(asked.values) - 1))
    distribution, unit = _distribution(asked), _unit(column, asked)
    if asked.epsilon is None:
        noise = AddedNoise(column.name, distribution, unit)
        return RandomizedNumber(column, noise, noise_draws(distribution, unit), None)
    assert asked.range is not None
    low, high = math.floor(asked.range[0] / unit), math.ceil(asked.range[1] / unit)
    distribution = laplace_of(asked.epsilon, high - low, unit)
    draws = noise_draws(distribution, unit)
    limit = widest_limit(draws)
    if not limit > high - low or privacy_loss(draws, high - low) > asked.epsilon:
        raise PolicyError(f"The noise of {column.name} does not keep epsilon {asked.epsilon:g}; ask for a smaller one.")
    limits = high - limit, low + limit
    noise = AddedNoise(column.name, distribution, unit, (limits[0] * unit, limits[1] * unit), asked.epsilon)
    return RandomizedNumber(column, noise, draws, limits)


def _measure(
    engine: Engine, source: Relation, changing: Sequence[tuple[Column, ColumnNoise | RandomizedResponse]]
) -> tuple[int, dict[str, Sequence[Any]]]:
    """Count rows, and of each randomized column the values that are NULL, no numbers, or not declared; one scan."""
    rows, *figures = engine.query_one(
        "randomize/measure_columns",
        source=source,
        columns=[_measured(engine, column, asked) for column, asked in changing],
    )
    five = zip(*[iter(figures)] * 5, strict=True)
    return int(rows), {column.name: counts for (column, _), counts in zip(changing, five, strict=True)}


def _measured(engine: Engine, column: Column, asked: ColumnNoise | RandomizedResponse) -> dict[str, Any]:
    value = Markup(Identifier(column.name))
    if isinstance(asked, RandomizedResponse):
        return {
            "value": value,
            "text": text_of(engine.render, value, column.kind, column.type),
            "texts": [RedactedValue(text) for text in asked.values],
        }
    return {
        "value": value,
        "texts": None,
        "number": engine.render.macro("double", value),
        "is_finite": engine.render.macro("is_finite_number", value, column.kind.value),
        "range": asked.range,
    }


def _value_problems(one: Randomized, figures: Sequence[Any]) -> Iterator[str]:
    nulls, infinite, outside = (int(count or 0) for count in figures[:3])
    if nulls:
        yield (
            f"{nulls:,} rows hold NULL, which noise would leave to be seen; leave these rows out in a view, or put a"
            " value in its place there."
        )
    if infinite:
        yield f"{infinite:,} rows hold NaN or an infinity, which no noise hides; leave these rows out in a view."
    if outside and isinstance(one, RandomizedCategory):
        yield f"{outside:,} rows hold a value that is not among the declared ones (values); add it, or change the rows."
    elif outside:
        yield f"{outside:,} rows lie outside of the declared range; declare a wider one, or limit the values in a view."
    if isinstance(one, RandomizedNumber) and not infinite and figures[3] is not None:
        yield from _width_problems(one, max(abs(float(figures[3])), abs(float(figures[4]))))


def _width_problems(one: RandomizedNumber, greatest: float) -> Iterator[str]:
    """Refuse numbers that, with their noise, the type of the column can't hold."""
    units = greatest / one.change.unit + one.draws.greatest + 1
    most = _MOST_UNITS
    if one.column.kind is Kind.INTEGER:
        most = min(most, 2.0 ** (_bits(one.column) or 0))
    precision = re.search(r"\(\s*(\d+)", one.column.type) if one.column.kind is Kind.DECIMAL else None
    if precision is not None:
        most = min(most, 10.0 ** int(precision[1]))
    if one.column.kind is Kind.FLOAT and is_single(one.column.type):
        most = min(most, 3e38 / one.change.unit)
    if units >= most:
        yield (
            f"its greatest numbers with their noise don't fit into {one.column.type}; cast it to a wider type in a"
            " view, or limit the numbers there."
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
    numbers = [name for name, one in plan.randomized.items() if isinstance(one, RandomizedNumber)]
    if numbers:
        yield (
            f"Noise hides little of outliers: whoever is far from all others in {', '.join(quoted(numbers))} still is"
            " with noise. Limit such values in a view before."
        )
    if len(numbers) > 1:
        yield (
            f"Noise of {', '.join(quoted(numbers))} is drawn apart: where these columns depend on each other, a filter"
            " takes a part of it away again. docs/randomization.md says more."
        )
    sensitive = [one.name for one in plan.kept if plan.policy.attributes[one.name].role is Role.SENSITIVE]
    if sensitive:
        yield f"{', '.join(quoted(sensitive))}: sensitive, and released as it is."
    if plan.epsilon is None:
        yield "No epsilon bounds what a row tells of its person: gaussian and uniform noise have none."
    elif plan.epsilon > 10:
        yield f"epsilon {plan.epsilon:g} of a row promises next to nothing: 1 or less is usual."
