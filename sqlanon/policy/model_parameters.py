"""A privacy model as policies ask for it, whoever adds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from sqlanon.policy.part import Part


class ModelParameters(Part):
    """A privacy model as a policy asks for it: its name under `model`, and its parameters."""

    model: str
    is_mechanism: ClassVar[bool] = False
    """True if the protection is in how the release is drawn, so that no class can be judged by it."""
    values_in: ClassVar[tuple[str, ...]] = ()
    """The parameters that name values of the data, which records, reports and messages do not show."""
    k_in: ClassVar[str | None] = None
    """The parameter that is the least size of every class, as the k of k-anonymity, which sweeps change."""

    parts_at: ClassVar[Mapping[str, type[BaseModel]]] = {}
    """The parts of the grammar that values are of, or entries of a list, by their keys."""

    @property
    def population_table(self) -> str | None:
        """The table of all who could be in the release, where the model judges by it: its name, as people read it."""
        population = getattr(self, "population", None)
        return None if population is None else str(population)

    def shown(self) -> dict[str, Any]:
        """The model and its parameters as people read them: of a population its name, which has no password."""
        given = self.model_dump()
        return given if self.population_table is None else given | {"population": self.population_table}

    @property
    def sensitive(self) -> str | None:
        """The sensitive attribute that the model looks at; None where it looks at sizes of classes alone."""
        return getattr(self, "attribute", None)
