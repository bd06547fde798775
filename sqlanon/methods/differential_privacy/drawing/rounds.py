"""The progress of searches by rounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rounds:
    """The progress of a search by rounds, whose number is public."""

    rounds: int
    of: int

    @property
    def text(self) -> str:
        return f"round {self.rounds:,} of {self.of:,}"
