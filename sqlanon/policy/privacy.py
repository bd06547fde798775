"""The privacy models that a policy can ask for, by name, and those that judge classes by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, SerializeAsAny

from sqlanon.policy.part import Number, Part, Reference, Whole, broken, different
from sqlanon.policy.population_models import DeltaPresenceParameters, KMapParameters, PopulationPlace
from sqlanon.policy.registry import ModelParameters, Registry
from sqlanon.support.plugins import GUARANTEES
from sqlanon.support.quantities import quantity


class KAnonymityParameters(ModelParameters):
    """Every equivalence class holds at least k rows."""

    k_in: ClassVar[str | None] = "k"
    model: Literal["k-anonymity"]
    k: Whole = Field(ge=1)
    """The least rows of a class."""


class KmAnonymityParameters(ModelParameters):
    """Whoever knows any m rows of a person still has k persons or more: every set of up to m classes in which one
    person has rows is that of at least k persons."""

    k_in: ClassVar[str | None] = "k"
    model: Literal["km-anonymity"]
    k: Whole = Field(ge=1)
    """The least persons who have all classes of a set."""
    m: Whole = Field(ge=1, le=10)
    """The rows of a person that somebody may know; needs a `subject`, which tells whose rows they are."""


class DistinctLDiversityParameters(ModelParameters):
    """Every class holds at least l distinct values of the sensitive attribute."""

    model: Literal["distinct-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The least number of values."""


class EntropyLDiversityParameters(ModelParameters):
    """Shannon entropy of the sensitive attribute in every class is at least log(l)."""

    model: Literal["entropy-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    l: Number = Field(ge=1)  # noqa: E741
    """The number of equally frequent values whose entropy is the least allowed."""


class RecursiveLDiversityParameters(ModelParameters):
    """x1 < c * (x_l + ... + x_m) in every class, x being its value counts in descending order."""

    model: Literal["recursive-l-diversity"]
    attribute: str
    """The sensitive attribute."""
    c: Number = Field(gt=0)
    """The factor: the most frequent value must occur less than `c` times as often as the rarer values together."""
    l: Whole = Field(ge=1)  # noqa: E741
    """The place from which values count as rarer ones."""


Distance = Literal["equal", "ordered", "hierarchical", "kl"]


class CostsFile(Part):
    """The earth mover's distance by costs between values, out of a file."""

    csv: Reference = Field(min_length=1)
    """A file of lines `value;value;cost`."""


def _distance(given: Any) -> Any:
    """Take the name of a distance, or a file of costs; refused in one sentence."""
    is_file = isinstance(given, dict) and given.keys() == {"csv"} and isinstance(given["csv"], str) and given["csv"]
    if isinstance(given, CostsFile) or is_file or (isinstance(given, str) and given in get_args(Distance)):
        return given
    names = ", ".join(f"'{name}'" for name in get_args(Distance))
    raise broken(f"must be {names}, or {{csv: costs.csv}}, a file of lines value;value;cost.")


class TClosenessParameters(ModelParameters):
    """The distance between a class's distribution and the table's is at most t."""

    model: Literal["t-closeness"]
    attribute: str
    """The sensitive attribute."""
    distance: Annotated[Distance | CostsFile, BeforeValidator(_distance)] = "equal"
    """`equal` is the variational distance, `ordered` and `hierarchical` the earth mover's, `kl` the Kullback-Leibler
    divergence; `{csv: costs.csv}` the earth mover's by costs of your own, a line `value;value;cost` for each pair of
    values, the greatest of which counts as 1."""
    t: Number = Field(ge=0)
    """The greatest distance."""

    @property
    def costs(self) -> CostsFile | None:
        """The file of the costs, where the distance has one."""
        return self.distance if isinstance(self.distance, CostsFile) else None


class VarianceDiversityParameters(ModelParameters):
    """The population variance of a numeric sensitive attribute in every class is at least v."""

    model: Literal["variance-diversity"]
    attribute: str
    """The sensitive attribute."""
    v: Number = Field(ge=0)
    """The least variance, in the attribute's unit squared."""


class BetaLikenessParameters(ModelParameters):
    """No value of the sensitive attribute gains much in a class: (q - p) / p is at most beta, p being its share of the
    table, and q that of the class."""

    model: Literal["beta-likeness"]
    attribute: str
    """The sensitive attribute."""
    beta: Number = Field(gt=0)
    """The greatest gain: 1 lets a value be twice as frequent in a class as in the table."""
    form: Literal["enhanced", "basic"] = "enhanced"
    """`enhanced` bounds the gain by -ln(p) too, so that no value of the table becomes certain; `basic` does not."""


class DeltaDisclosureParameters(ModelParameters):
    """The share of every sensitive value in a class differs from that in the table by less than a factor of 2 to the
    delta, upwards or downwards; no class lacks a value of the table."""

    model: Literal["delta-disclosure"]
    attribute: str
    """The sensitive attribute."""
    delta: Number = Field(gt=0)
    """The bound of the binary logarithm of the ratio of the shares, which stays below it."""


MOST_NAMED = 1000  # values that a model names


def different_values(given: object) -> object:
    """Take the texts of values that a model names."""
    return different(given, 1, MOST_NAMED)


class AlphaKParameters(ModelParameters):
    """Every class holds at least k rows, of which each value of the sensitive attribute has at most the share alpha."""

    values_in: ClassVar[tuple[str, ...]] = ("values",)
    k_in: ClassVar[str | None] = "k"
    model: Literal["alpha-k"]
    attribute: str
    """The sensitive attribute."""
    alpha: Number = Field(gt=0, le=1)
    """The greatest share of a class that may have a value in common."""
    k: Whole = Field(ge=1)
    """The least rows of a class."""
    values: Annotated[tuple[str, ...] | None, BeforeValidator(different_values)] = None
    """The values that alpha is about, as `[HIV, cancer]`; if not given, all values."""


class ConfidenceBoundParameters(ModelParameters):
    """From no class can a value of the sensitive attribute be inferred with more than the confidence: in no class has
    it a greater share."""

    values_in: ClassVar[tuple[str, ...]] = ("values",)
    model: Literal["confidence-bound"]
    attribute: str
    """The sensitive attribute."""
    confidence: Number = Field(gt=0, le=1)
    """The greatest share of a class that may have a value in common."""
    values: Annotated[tuple[str, ...] | None, BeforeValidator(different_values)] = None
    """The values that must not be inferred, as `[HIV, cancer]`; if not given, all values."""


class AverageRiskParameters(ModelParameters):
    """Somebody who knows that a row is in the release picks it rightly with a chance of at most the risk, on the mean
    over all rows: the classes of the release over its rows."""

    model: Literal["average-risk"]
    risk: Number = Field(gt=0, le=1)
    """The greatest mean chance: 0.05 lets the release have one class for 20 rows."""


class PopulationUniquenessParameters(ModelParameters):
    """The share of the population, of which the rows are a random sample, that is alone with what its class shows, is
    estimated to be at most so great."""

    model: Literal["population-uniqueness"]
    share: Number = Field(ge=0, lt=1)
    """The greatest share of the population: 0.001 lets one in a thousand be alone."""
    sample_of: Number = Field(gt=0, le=1)
    """The fraction of the population that the rows are: 0.02 for every fiftieth."""
    estimator: Literal["dankar", "zayatz", "pitman", "snb"] = "dankar"
    """The estimate: of `zayatz`, `pitman`, or `snb` (slide negative binomial); `dankar` is the one of them that the
    rule of Dankar et al. trusts for the fraction."""


class MInvarianceParameters(ModelParameters):
    """Every class has at least m rows, each with another value of the sensitive attribute, and the classes of a person
    show the same set of values in all releases about the same people. It needs `history`, algorithm `buckets`, and no
    other model; docs/several-releases.md says more."""

    model: Literal["m-invariance"]
    attribute: str
    """The sensitive attribute."""
    m: Whole = Field(ge=2)
    """The least rows of a class, each with another value."""


MODELS: Mapping[str, type[ModelParameters]] = {
    get_args(part.model_fields["model"].annotation)[0]: part
    for part in (
        KAnonymityParameters,
        KmAnonymityParameters,
        DistinctLDiversityParameters,
        EntropyLDiversityParameters,
        RecursiveLDiversityParameters,
        TClosenessParameters,
        VarianceDiversityParameters,
        BetaLikenessParameters,
        DeltaDisclosureParameters,
        AlphaKParameters,
        ConfidenceBoundParameters,
        AverageRiskParameters,
        PopulationUniquenessParameters,
        KMapParameters,
        DeltaPresenceParameters,
        MInvarianceParameters,
    )
}
"""The privacy models that judge classes, by name; methods add guarantees of how a release is drawn."""


_REGISTRY: Registry[ModelParameters] = Registry(
    GUARANTEES, "model", ModelParameters, MODELS, lambda method: method.guarantees
)
own_models = _REGISTRY.own_parameters
model_names = _REGISTRY.names
parameters_of_model = _REGISTRY.parameters_of
Model = Annotated[SerializeAsAny[ModelParameters], BeforeValidator(_REGISTRY.validate)]


def costs_of(models: tuple[Model, ...]) -> dict[int, CostsFile]:
    """The files of costs by the places of the models that measure distances by them."""
    measured = ((place, getattr(model, "costs", None)) for place, model in enumerate(models))
    return {place: costs for place, costs in measured if isinstance(costs, CostsFile)}


def populations_elsewhere(models: tuple[Model, ...]) -> dict[int, PopulationPlace]:
    """The populations in other databases by the places of the models that look at them."""
    looked_at = ((place, getattr(model, "population", None)) for place, model in enumerate(models))
    return {place: population for place, population in looked_at if isinstance(population, PopulationPlace)}


def k_asked(models: tuple[Model, ...]) -> int:
    """The largest least size of a class that is asked for, by k-anonymity or another model with a k, or 1."""
    return max((getattr(model, model.k_in) for model in models if model.k_in is not None), default=1)


def models_with_k(models: tuple[Model, ...], k: int) -> tuple[Model, ...]:
    """The same models with this k in place of every other; k-anonymity is added where no model has a k."""
    changed = tuple(m if m.k_in is None else m.model_copy(update={m.k_in: k}) for m in models)
    has_k = any(model.k_in is not None for model in models)
    return changed if has_k else (KAnonymityParameters(model="k-anonymity", k=k), *changed)


def without_named_values(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a policy that says how many values it names, and not which.

    No digest stands for them: of few possible values it would tell which.
    """
    parameters = parameters_of_model(model.get("model"))
    hidden = () if parameters is None else parameters.values_in
    return {key: _hidden(value) if key in hidden and value is not None else value for key, value in model.items()}


def _hidden(values: Any) -> str:
    number = len(values) if isinstance(values, (list, tuple)) else 1
    return f"{quantity(number, 'value')}, not shown"
