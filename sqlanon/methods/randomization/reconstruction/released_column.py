"""A randomized column of a release, counted in groups."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.bins import Bins
from sqlanon.models.randomization.changes import greatest_released
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import double_of, text_of

MOST_GROUPS = 100


MOST_SHOWN = 20_000  # bins of released numbers


def require_few(column: str, bins: int) -> None:
    """Raise PolicyError where released numbers of a column are in more bins than an estimate is made of."""
    if bins > MOST_SHOWN:
        raise PolicyError(
            f"Released numbers of {column} are in {bins:,} bins, and an estimate is made of {MOST_SHOWN:,} at most: ask"
            " for fewer bins (--bins) or a wider range (--from, --to); sqlanon verify says whether the release was"
            " changed."
        )


class GroupedColumn:
    """A column of a release, in groups."""

    def __init__(self, engine: Engine, release: Relation, column: Column, group: Expression | None) -> None:
        self.engine, self.release, self.column, self.group = engine, release, column, group

    def number(self, unit: float) -> Expression:
        """Write the value as a double; NULL for what no noise gives in multiples of this unit."""
        return possible_number_of(self.engine, self.column, unit)

    @property
    def text(self) -> Expression:
        """The value as a text."""
        return text_of(self.engine.render, Markup(Identifier(self.column.name)), self.column.kind, self.column.type)

    def count(self, template: str, **values: Any) -> dict[str | None, dict[Any, int]]:
        """Count rows by group and value, the groups in the order of their texts."""
        counted: dict[str | None, dict[Any, int]] = defaultdict(dict)
        for group, value, rows in self.engine.query(template, release=self.release, group=self.group, **values):
            counted[group][value] = int(rows)
        if not counted:
            raise PolicyError(f"{self.release} holds no rows.")
        if len(counted) > MOST_GROUPS:
            raise PolicyError(f"--by has {len(counted):,} values, and {MOST_GROUPS} groups at most are reconstructed.")
        return {group: counted[group] for group in sorted(counted, key=lambda group: (group is not None, group))}

    def bins(self, range_: tuple[float, float] | None, count: int, unit: float) -> Bins:
        """Divide the range of originals into bins; by default that of the released numbers."""
        ends = range_ or self.engine.query_one(
            "methods/randomization/measure_ends", relation=self.release, number=self.number(unit)
        )
        if ends[0] is None:
            raise PolicyError(f"{self.release} holds no numbers in {self.column.name}.")
        return Bins.over(float(ends[0]), float(ends[1]), count, unit)

    def require_known(self, unknown: int) -> None:
        """Raise PolicyError where rows hold what no noise makes of a number."""
        if unknown:
            raise PolicyError(
                f"{self.column.name} is NULL, NaN, infinite or too great in {quantity(unknown, 'released row')}, which"
                " no noise makes of a number: the release was changed (sqlanon verify)."
            )


def possible_number_of(engine: Engine, column: Column, unit: float) -> Expression:
    """Write the expression for the numbers of a column as doubles; NULL for those that no noise gives in this unit.

    Such are NaN, infinities, and what is beyond the multiples of the unit that a run releases.
    """
    return macro("randomize.within", number_of(engine, column), greatest_released(unit))


def is_possible(engine: Engine, column: Column, unit: float) -> Expression:
    """Write the condition that noise can give a number in this unit."""
    return macro("randomize.is_within", number_of(engine, column), greatest_released(unit))


def number_of(engine: Engine, column: Column) -> Expression:
    """Write the expression for the numbers of a column as doubles.

    Whole numbers are converted as they are: randomized ones are below 2^51, which doubles hold exactly, and a detour by
    their texts, as of decimals, takes five times as long as counting them.
    """
    value = Markup(Identifier(column.name))
    if column.kind is Kind.INTEGER:
        return engine.render.macro("double", value)
    return double_of(engine.render, value, column.kind)
