"""k-map: every class of the release fits at least k rows of a population table.

Source: L. Sweeney, "Computational disclosure control: a primer on data privacy protection", PhD thesis, MIT, 2001.

The population is all who could be in the release. Somebody who does not know who is in it can link a released row to no
fewer than k members of the population, even where the class itself is smaller.

The population stays as it is whatever is released, so merging classes only adds members: monotone under generalization,
closed under union, and under suppression of whole classes, for a class is judged by its own labels alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlanon.models.base import Groups, relation
from sqlanon.models.k_anonymity import AtLeastK
from sqlanon.sql import Renderer, Statement


@dataclass(frozen=True)
class KMap(AtLeastK):
    """Every class fits at least `k` rows of the table `population`; the measure is their number."""

    name: ClassVar[str] = "k-map"
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = True
    closed_under_union: ClassVar[bool] = True

    k: int
    population: str
    attribute: str | None = field(default=None, init=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"k": self.k, "population": self.population}

    @property
    def sentence(self) -> str:
        return (
            f"Every class fits at least {self.k:,} rows of {self.population}, so that somebody who does not know who is"
            " in the release can link a row to no fewer."
        )

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The rows of the population that each class fits, exactly; 0 where it fits none."""
        population = relation(groups.population)
        return render("models/measure_k_map", classes=groups.classes, population=population, k=self.k)
