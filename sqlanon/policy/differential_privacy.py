"""Differential privacy as a policy asks for it, and the budget that it is charged on."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, Field

from sqlanon.policy.part import Number, Part, Whole, broken
from sqlanon.policy.registry import ModelParameters

COUNT = "count"  # the column of the noisy counts
MOST_EPSILON = 100  # beyond it nothing is protected, and noise is below one row


class Unit(Part):
    """The unit that differential privacy protects, where it is not a row."""

    column: str
    """The column whose values tell the persons apart; rows in which it is NULL are left out."""
    rows: Whole = Field(ge=1)
    """The most rows that count of one person; which ones is decided by a hash with a secret key."""


def _unit(given: Any) -> Any:
    """Take `row`, or a column of persons with the most rows of each; refused in one sentence."""
    if isinstance(given, Unit) or given == "row":
        return given
    is_unit = isinstance(given, dict) and given.keys() == {"column", "rows"} and isinstance(given["column"], str)
    if not is_unit or type(given["rows"]) is not int or not 0 < given["rows"] < 2**63:
        raise broken(
            "must be row, or {column: …, rows: …}: the column that tells persons apart, and the most rows that count of"
            " one, a whole number of at least 1."
        )
    return given


class DifferentialPrivacy(ModelParameters):
    """A release tells almost nothing of any one row, whatever somebody knows already: its probability changes by a
    factor of at most e to the epsilon when a row is added or removed."""

    is_mechanism: ClassVar[bool] = True
    parts_at: ClassVar[Mapping[str, type[BaseModel]]] = {"unit": Unit}
    model: Literal["differential-privacy"]
    epsilon: Number = Field(gt=0, le=MOST_EPSILON)
    """The privacy loss of the whole release; smaller protects more."""
    unit: Annotated[Literal["row"] | Unit, BeforeValidator(_unit)] = "row"
    """The unit that is protected: `row`, or `{column: person, rows: 3}` for persons with at most so many rows."""

    @property
    def exact(self) -> Fraction:
        """The decimal number that the policy says, as a fraction."""
        return Fraction(repr(self.epsilon))

    @property
    def persons(self) -> str | None:
        """The column that tells persons apart, where these are the unit."""
        return self.unit.column if isinstance(self.unit, Unit) else None

    @property
    def contribution(self) -> int:
        """The most rows that one unit adds."""
        return self.unit.rows if isinstance(self.unit, Unit) else 1


class PrivacyBudget(Part):
    """The privacy budget of the source, which a release of differential privacy is charged on before it is drawn."""

    ledger: str = Field(min_length=1)
    """The name of the budget in the catalog, as `sqlanon budget grant` opened it."""
    epsilon: Number | None = Field(default=None, gt=0)
    """The most that all releases of the source may cost together, whatever is granted; if not given, or above the
    grants, these are the limit."""

    @property
    def limit(self) -> Fraction | None:
        """The decimal number that the policy says, as a fraction."""
        return None if self.epsilon is None else Fraction(repr(self.epsilon))


def mechanism_of(models: tuple[ModelParameters, ...]) -> DifferentialPrivacy | None:
    """Return the model of differential privacy; None where there is none."""
    return next((model for model in models if isinstance(model, DifferentialPrivacy)), None)
