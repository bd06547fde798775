"""A column whose values are changed at random, and why its values may not be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.models.randomization.changes import (
    RandomChange,
)
from sqlanon.support.quantities import rows_hold


@dataclass(frozen=True)
class RandomizedColumn(ABC):
    """A column whose values are changed at random."""

    column: Column
    change: RandomChange

    @abstractmethod
    def measured(self, engine: Engine) -> dict[str, Any] | None:
        """Describe the column for the statement that counts values which can't be changed; None where all can."""

    @abstractmethod
    def value_problems(self, rows: int, figures: Sequence[Any]) -> Iterator[str]:
        """Say why values can't be released.

        rows: of the source. figures: counts of NULLs, infinite numbers, and values outside, the least and the greatest
        number; none of a column that is not measured.
        """


def null_problem(nulls: int) -> str:
    return (
        f"{rows_hold(nulls)} NULL, which noise would leave to be seen; leave these rows out in a view, or put a value"
        " in its place there."
    )
