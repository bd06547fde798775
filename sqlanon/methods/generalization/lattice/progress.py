"""The progress of a search over a lattice, for whoever follows the search."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.support.quantities import quantity


@dataclass(frozen=True)
class LatticeProgress:
    """Generalizations checked, those still open, and the best score with the lowest that is still possible."""

    checked: int
    open: int
    best: float | None = None
    bound: float | None = None

    @property
    def text(self) -> str:
        """The progress in a few words."""
        words = f"{quantity(self.checked, 'generalization')} checked, {self.open:,} open"
        if self.best is not None:
            words += f", best {self.best:.6g}"
        if self.bound is not None:
            words += f", none below {self.bound:.6g}"
        return words
