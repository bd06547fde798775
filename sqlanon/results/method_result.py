"""The result of a run whose release shows no classes of rows; its method types all that is particular to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sqlanon.results.codec import JsonObject

if TYPE_CHECKING:
    from sqlanon.results.measures import Check


@dataclass(frozen=True)
class MethodResult(JsonObject):
    """A result of a method: a subclass has the fields of `run --json`, among them those that are declared here.

    shows: what a run released, in a sentence. release_of: such a release, in a sentence.
    no_rules: the reason why the release leaves no rules for other rows.
    """

    shows: ClassVar[str]
    release_of: ClassVar[str]
    no_rules: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def run(self) -> str:
            """The run's id."""

        @property
        def algorithm(self) -> str:
            """The name of the algorithm in the policy."""

        @property
        def checks(self) -> Mapping[str, Check]:
            """The checks of the staged release, by name."""


class MethodCheck(Protocol):
    """A plan that was checked against its table; its method types all that is particular to it."""

    @property
    def refusal(self) -> str | None:
        """The reason why a run would be refused for an earlier release; None where it would not."""

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `check --json` prints it."""
