"""Sorted runs as a policy asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

from pydantic import Field

from sqlanon.policy import AlgorithmParameters, Policy, Recodes
from sqlanon.policy.document import Path


class SortedRuns(AlgorithmParameters):
    """Sorts the table by its quasi-identifiers, and takes neighbours for a class, as many as the models need."""

    name: Literal["sorted-runs"]
    growth: int = Field(default=2, ge=2)
    """Factor by which classes become larger where one of them violates a model."""

    recodes: ClassVar[Recodes] = Recodes.REGIONS
    sentence: ClassVar[str] = "The table was sorted, and rows that were neighbours became a class."

    @property
    def leaves_rules(self) -> bool:
        """False: there is no tree of the classes that new rows could be sent down."""
        return False


def problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say which keys of a policy do not go with sorted runs."""
    if policy.ranges == "cuts":
        yield f"{place(('ranges',))}: sorted-runs cuts no tree, so ranges are those that are observed; leave it out."
