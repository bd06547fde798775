"""The privacy models that hold classes against a population table, and the places of such tables."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from sqlanon.engines.urls import redacted
from sqlanon.policy.locations import Location
from sqlanon.policy.part import Number, Reference, Whole, broken
from sqlanon.policy.registry import ModelParameters
from sqlanon.support.environment import named


class PopulationPlace(Location):
    """A population table in another database than the source's."""

    url: Reference = Field(min_length=1)
    """The database; written as that of the source."""
    table: str = Field(min_length=1)
    """The table, as SQL writes it: on PostgreSQL a name without quotes is folded to lower case. Where only the name as
    written exists, it is meant; where both do, it has to be in quotes."""

    def __str__(self) -> str:
        return f"{self.table} of {redacted(named(self.url))}"


def _population(given: Any) -> Any:
    """Take a table, or the database and the table; refused in one sentence."""
    is_place = isinstance(given, dict) and given.keys() == {"url", "table"}
    texts = given.values() if is_place else (given,)
    if isinstance(given, PopulationPlace) or all(isinstance(text, str) and text for text in texts):
        return given
    raise broken("must be a table of the source's database, or {url: …, table: …} of another one.")


class PopulationParameters(ModelParameters):
    """A privacy model that holds classes against a population table, of all who could be in the release."""

    population: Annotated[str | PopulationPlace, BeforeValidator(_population)]
    """The table, as `schema.table`, in the source's database, with the quasi-identifiers under the same names; or
    `{url: …, table: …}` in another one, of which the counted combinations of these columns are read."""


class KMapParameters(PopulationParameters):
    """Every class fits at least k rows of a population table, of all who could be in the release."""

    model: Literal["k-map"]
    k: Whole = Field(ge=1)
    """The least rows of the population that a class fits."""


class DeltaPresenceParameters(PopulationParameters):
    """Of the rows of a population table that fit a class, at most a share is in the release, and at least another one
    if that is given: nobody who could be in it is known to be there, or not, with a greater probability."""

    model: Literal["delta-presence"]
    maximum: Number = Field(gt=0, lt=1)
    """The greatest share, delta_max: 0.3 lets 3 of 10 be in the release."""
    minimum: Number | None = Field(default=None, gt=0, lt=1)
    """The least share, delta_min, also of people whose labels no row of the release shows: nothing may be
    suppressed."""
