"""Searches over levels of hierarchies, and what each may be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, JsonValue, PlainSerializer, WrapValidator, model_validator
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from sqlanon.errors import PolicyError
from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.document import path_text
from sqlanon.policy.part import Number, Whole, broken
from sqlanon.support.plugins import QUALITIES, find_plugins, load_plugin
from sqlanon.support.suggest import did_you_mean

if TYPE_CHECKING:
    from sqlanon.policy import Policy

_LEVELS = "Every column is shown at one level of its hierarchy. "
Quality = Literal["loss", "precision", "discernibility", "aecs", "entropy", "entropy-arx", "height", "kl-divergence"]
OWN_QUALITIES: tuple[str, ...] = get_args(Quality)
"""The program's own quality models by name."""
WEIGHTED = ("loss", "precision", "entropy", "entropy-arx", "height")


def quality_names() -> list[str]:
    """List the names of all quality models, those of installed packages last."""
    return [*OWN_QUALITIES, *(name for name in find_plugins(QUALITIES) if name not in OWN_QUALITIES)]


def _known_quality(given: Any, _own: ValidatorFunctionWrapHandler) -> Any:
    """Take the name of a quality model, whoever adds it."""
    if given in OWN_QUALITIES or (isinstance(given, str) and given in find_plugins(QUALITIES)):
        return given
    raise PydanticKnownError("literal_error", {"expected": ", ".join(f"'{name}'" for name in quality_names())})


def _uses_weights(quality: str) -> bool:
    added = None if quality in OWN_QUALITIES else load_plugin(QUALITIES, quality, object)
    return quality in WEIGHTED or bool(getattr(added, "uses_weights", False))


class TopDown(AlgorithmParameters):
    """Cuts every quasi-identifier's hierarchy somewhere, each branch at a level of its own: from `*` down, the group
    whose children gain most takes their place, for as long as every class satisfies all models."""

    sentence: ClassVar[str] = (
        "Every column began as *, and the group whose parts gain most was replaced by them, again and again."
    )
    recodes: ClassVar[Recodes] = Recodes.CUTS
    name: Literal["top-down"]
    quality: Literal["loss", "information-gain"] = "loss"
    """The gain of a cut: less `loss`, or more information of the quasi-identifiers about the target."""
    target: str | None = None
    """With information-gain: the sensitive or insensitive attribute that readers of the release want to predict."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.target is not None) != (self.quality == "information-gain"):
            raise broken("must have a target with quality: information-gain, and only with that.")
        return self


class _FullDomain(AlgorithmParameters):
    """Full-domain generalization: every value of a column is shown at one level of its hierarchy."""

    recodes: ClassVar[Recodes] = Recodes.LEVELS
    judges_tables: ClassVar[bool] = True
    joins_rows: ClassVar[bool] = True

    quality: Annotated[Quality, WrapValidator(_known_quality), PlainSerializer(str)] = Field(
        "loss", json_schema_extra=lambda written: written.update(enum=list[JsonValue](quality_names()))
    )
    """The measure in which the released generalization is best, among those that the algorithm finds; docs/quality.md
    has the formulas."""
    aggregate: Literal["geometric", "arithmetic", "max"] = "geometric"
    """The aggregate of the quasi-identifiers' `loss`: one of two means, or the largest value."""
    weights: dict[str, Number] = {}  # noqa: RUF012 - pydantic copies it
    """The weight of a quasi-identifier in `loss`, `precision`, `entropy`, `entropy-arx` and `height`; 1 where none is
    given."""
    limits: dict[str, tuple[Whole, Whole]] = {}  # noqa: RUF012 - pydantic copies it
    """The least and the greatest level that a quasi-identifier may be shown at. Levels that its hierarchy does not have
    are refused: a mask has one for each character of the longest value, which depends on the table."""
    recoding: Literal["full-domain", "attribute-suppression"] = "full-domain"
    """`full-domain` shows a quasi-identifier at any level of its hierarchy; `attribute-suppression` as it is (level 0)
    or as `*` (level 1), with nothing between."""

    def height_problems(self, policy: Policy, heights: Mapping[str, int], warnings: list[str]) -> Iterator[str]:
        from sqlanon.algorithms.search_options import SearchOptions
        from sqlanon.methods.generalization.lattice.options import full_domain, lattice_within, require_affordable

        if self.suppresses_attributes:
            heights = dict.fromkeys(heights, 1)
        if problems := list(self.limit_problems(heights)):
            yield from problems
            return
        try:
            require_affordable(lattice_within(full_domain(policy), heights), policy, SearchOptions())
        except PolicyError as refusal:
            warnings.append(f"A run would be refused: {refusal}")

    def limit_problems(self, heights: Mapping[str, int]) -> Iterator[str]:
        """Say which limits are beyond the levels that hierarchies have on a table: `heights` has the topmost ones."""
        for name, (low, high) in self.limits.items():
            height = heights.get(name, high)
            if high > height:
                yield (
                    f"{path_text(('algorithm', 'limits', name))}: its hierarchy has levels 0 to {height} on this table,"
                    f" not {low} to {high}; name levels up to {height}, or leave the limits out."
                )

    def problems(self, quasi: Sequence[str]) -> Iterator[str]:
        for key in ("limits", "weights"):
            for name in getattr(self, key):
                if name not in quasi:
                    place = path_text(("algorithm", key, name))
                    yield f"{place}: it is not a quasi-identifier; {did_you_mean(name, quasi)}"
        if quasi and not any(self.weights.get(name, 1) for name in quasi):
            yield (
                "algorithm.weights: at least one quasi-identifier needs a weight above 0, which is 1 where none is"
                " given."
            )

    @property
    def suppresses_attributes(self) -> bool:
        """Tell whether a quasi-identifier is shown as it is or as `*`, with nothing between."""
        return self.recoding == "attribute-suppression"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "aggregate" in self.model_fields_set and self.quality != "loss":
            raise broken(f"has an aggregate, which only quality: loss uses, not {self.quality}.")
        if self.weights and not _uses_weights(self.quality):
            raise broken(f"has weights, which quality: {self.quality} does not use; {', '.join(WEIGHTED)} do.")
        for attribute, weight in self.weights.items():
            if weight < 0:
                raise broken(f"has a negative weight for '{attribute}'.")
        for attribute, (low, high) in self.limits.items():
            if not 0 <= low <= high:
                raise broken(f"has limits for '{attribute}' that are not two levels, the lower one first.")
        return self


class Incognito(_FullDomain):
    """Finds all generalizations that satisfy the models, subset by subset of the quasi-identifiers, and releases the
    best of the minimal ones."""

    sentence: ClassVar[str] = _LEVELS + (
        "All combinations of levels that satisfy the models were found, and the best of the least general "
        "ones was taken."
    )
    exhaustive: ClassVar[bool] = True
    name: Literal["incognito"]
    variant: Literal["basic", "super-roots", "cube"] = "basic"
    """The origin of frequency sets: `basic` counts the roots of a candidate graph from the table, `super-roots` the
    roots of a family together, `cube` all of them from the sets of ungeneralized subsets."""


class Samarati(_FullDomain):
    """Finds the generalizations of minimal height by binary search, and releases the best of them."""

    sentence: ClassVar[str] = _LEVELS + (
        "The least total height at which the models hold was found, and the best combination of that height was taken."
    )
    exhaustive: ClassVar[bool] = True
    name: Literal["samarati"]


class BottomUp(_FullDomain):
    """Finds all generalizations that satisfy the models, breadth first from the table as it is, and releases the best
    of the minimal ones."""

    sentence: ClassVar[str] = _LEVELS + (
        "Combinations of levels were looked at from the most exact one up, and the best of the least general "
        "ones was taken."
    )
    exhaustive: ClassVar[bool] = True
    name: Literal["bottom-up"]
    rollup: bool = True
    """`true`: a frequency set is rolled up from a more specific one; `false`: it is counted from the table."""


class Optimal(_FullDomain):
    """Finds the generalization of the best quality within the suppression budget, by branch and bound."""

    sentence: ClassVar[str] = (
        _LEVELS + "The best of all combinations of levels within the suppression budget was searched for."
    )
    stops_early: ClassVar[bool] = True
    name: Literal["optimal"]


class Datafly(_FullDomain):
    """Generalizes, time and again, the attribute with the most distinct values; fast, and not minimal."""

    sentence: ClassVar[str] = (
        _LEVELS + "The column with the most values was generalized, time and again, until the models held."
    )
    name: Literal["datafly"]


FullDomain = Incognito | Samarati | BottomUp | Optimal | Datafly
