"""Findings of the check of a policy whose release shows no classes."""

from __future__ import annotations

from typing import Any, Protocol


class MethodCheck(Protocol):
    """A plan that was checked against its table; its method types all that is particular to it."""

    @property
    def refusal(self) -> str | None:
        """The reason why a run would be refused for an earlier release; None where it would not."""

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `check --json` prints it."""
