"""The columns of work tables that hold an attribute's range."""

from __future__ import annotations

from sqlanon.sql import Identifier


class Ranged:
    """A quasi-identifier whose ranges stand in two columns named after its place among the quasi-identifiers."""

    number: int

    @property
    def lo(self) -> Identifier:
        """Column for the first code, or segment, of a range."""
        return Identifier(f"lo_{self.number}")

    @property
    def hi(self) -> Identifier:
        """Column for the last code, or segment, of a range."""
        return Identifier(f"hi_{self.number}")
