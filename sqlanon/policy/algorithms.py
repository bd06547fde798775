"""The algorithms that a policy can ask for, with what each may be told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, SerializeAsAny, WrapValidator, model_validator
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from sqlanon.policy.attributes import Attribute, Role, Show
from sqlanon.policy.document import path_text
from sqlanon.policy.part import Number, Part, Whole, broken
from sqlanon.policy.registry import Registry
from sqlanon.support.plugins import ALGORITHMS, QUALITIES, find_plugins, load_plugin
from sqlanon.support.suggest import did_you_mean

_CUTS = "The table was cut into ever smaller parts, for as long as each part satisfied every model: "
_LEVELS = "Every column is shown at one level of its hierarchy. "
LEAST_BITS = 0.01  # the information gain below which TR 1590 cuts at medians
MOST_BINS = 2**20
GAMMA = 0.2  # of V-MDAV, as published for scattered rows
LEAST_BLOCK = 10  # rows
MOST_CELLS = 10_000_000  # which are drawn one by one
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


def _blocks(value: Any) -> Any:
    """Take `auto`, `exact`, or how many rows; refused in one sentence."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= LEAST_BLOCK
    if value not in ("auto", "exact") and not is_number:
        raise broken(f"must be auto, exact, or a whole number of at least {LEAST_BLOCK} rows.")
    return value


def _bins(value: Any) -> Any:
    """`exact`, or how many; told here in one sentence, where a union would tell of each of its members."""
    if value != "exact" and (not isinstance(value, int) or isinstance(value, bool) or not 2 <= value <= MOST_BINS):
        raise broken(f"must be exact, or a whole number from 2 to {MOST_BINS:,}.")
    return value


class Recodes(StrEnum):
    """The kind of recoding that a search comes to."""

    REGIONS = "regions"  # of a partition tree, which may overlap in any one column
    LEVELS = "levels"  # one level of its hierarchy for each column; rows may be suppressed
    CUTS = "cuts"  # each branch of a hierarchy at a level of its own
    CLUSTERS = "clusters"  # groups of similar rows, shown by their centres
    COUNTS = "counts"  # noisy counts of the cells of a public domain


class AlgorithmParameters(Part):
    """A search as a policy asks for it: its name, and its options."""

    name: str
    recodes: ClassVar[Recodes]
    exhaustive: ClassVar[bool] = False
    """True if the search may have to check every generalization of a lattice."""
    stops_early: ClassVar[bool] = False
    """True if the search knows, at any time, the best release so far."""
    samples: ClassVar[bool] = False
    """True if models must be testable on samples of the rows."""
    releases_clusters: ClassVar[bool] = False
    """True if the release has a row for each cluster, and a second table of the values of each."""
    is_private: ClassVar[bool] = False
    """True if the release is drawn by mechanisms of differential privacy."""
    draws_numbers: ClassVar[bool] = False
    """True if the release has synthetic rows, which need quasi-identifiers that are numbers."""

    hides_classes: ClassVar[str] = ""
    """The reason why readers of the published table do not see the classes that models judge; empty where they do."""

    sentence: ClassVar[str] = ""
    """The search, explained for readers of reports."""

    def problems(self, quasi: Sequence[str]) -> Iterator[str]:  # noqa: ARG002
        """Say what is wrong with the parameters for these quasi-identifiers."""
        return iter(())

    def show_of(self, attribute: Attribute, is_numeric: bool) -> Show:  # noqa: ARG002
        """Tell the form in which the release shows an attribute of a column of numbers, or of others."""
        return attribute.show

    @property
    def predicts(self) -> Literal["classes", "numbers"] | None:
        """The kind of target that the search needs; None for searches without a target."""
        return None

    @property
    def counted_target(self) -> str | None:
        """Name the attribute whose values the search counts in every group; None for a search that counts none."""
        return None

    def rows_of(self, k: int) -> int:
        """Count the rows of the smallest class that the search makes, where classes need k."""
        return k

    @property
    def kept_statistic(self) -> Literal["variance"] | None:
        """Name what the centres of numbers are rescaled to keep."""
        return None

    @property
    def leaves_rules(self) -> bool:
        """Tell whether new rows can be recoded alike by the rules of a release."""
        return self.recodes is not Recodes.CLUSTERS

    @property
    def suppresses(self) -> bool:
        """Tell whether rows may be left without a class."""
        return self.recodes is Recodes.LEVELS

    @property
    def needs_hierarchies(self) -> bool:
        """Tell whether every quasi-identifier must have a hierarchy."""
        return self.recodes in (Recodes.LEVELS, Recodes.CUTS)


class Mondrian(AlgorithmParameters):
    """Cuts the table at medians and hierarchies for as long as every part satisfies all models: rothko-t with
    `split: median`."""

    sentence: ClassVar[str] = _CUTS + "at the median of the column that was widest in the part."
    recodes: ClassVar[Recodes] = Recodes.REGIONS
    name: Literal["mondrian"] = "mondrian"


class Splits(AlgorithmParameters):
    """The choice of the cuts of a partition tree."""

    recodes: ClassVar[Recodes] = Recodes.REGIONS

    split: Literal["median", "information-gain", "regression"] = "median"
    """The choice of a cut: at the `median` of the widest attribute; by `information-gain`, so that the class is least
    uncertain in the parts; by `regression`, so that a number varies least in them."""
    target: str | None = None
    """With information-gain and regression: the sensitive or insensitive attribute that readers of the release want to
    predict."""
    bins: Annotated[Literal["exact"] | int, BeforeValidator(_bins)] = "exact"
    """The places where a range may be cut: `exact` is at every value, a number at the borders of at most so many bins
    of equal width."""
    least_gain: Number | None = Field(default=None, ge=0)
    """A part where no cut gains so much is cut at medians from then on: in bits with information-gain (0.01 if not
    given), as a share of its squared error with regression (0 if not given)."""

    @property
    def predicts(self) -> Literal["classes", "numbers"] | None:
        return {"information-gain": "classes", "regression": "numbers"}.get(self.split)  # type: ignore[return-value]

    @property
    def counted_target(self) -> str | None:
        return self.target

    @property
    def least(self) -> float:
        """The least gain, given or not."""
        if self.least_gain is not None:
            return self.least_gain
        return LEAST_BITS if self.split == "information-gain" else 0.0

    @model_validator(mode="after")
    def _check_split(self) -> Self:
        if (self.target is not None) != (self.split != "median"):
            raise broken("must have a target with split: information-gain or regression, and only with those.")
        for key in ("bins", "least_gain"):
            if key in self.model_fields_set and self.split == "median":
                raise broken(f"has {key}, which split: median does not use.")
        return self


class RothkoT(Splits):
    """Cuts the table into regions for as long as every part satisfies all models: at medians, or where it tells most of
    a target."""

    sentence: ClassVar[str] = (
        _CUTS + "at the median of the widest column, or where a cut tells most of the column to be predicted."
    )
    name: Literal["rothko-t"]


class RothkoS(Splits):
    """The same for tables far larger than memory: the tree is grown on a sample, where a split must be allowable with
    high confidence, checked and pruned on all rows, and finished on them. docs/sampling.md says when to choose it."""

    sentence: ClassVar[str] = (
        _CUTS + "first on a sample of the rows, then checked, corrected and finished on all of them."
    )
    samples: ClassVar[bool] = True
    name: Literal["rothko-s"]
    sample: Whole = Field(default=200_000, ge=2)
    """The rows of a sample; a node that has no more rows is worked on as it is."""
    alpha: Number = Field(default=0.05, gt=0, lt=0.5)
    """The probability with which a split on the sample may be one that the models forbid; it would be undone."""
    seed: Whole = Field(default=1, ge=0, lt=10**18)
    """The seed of the sample: with the same rows, the same seed gives the same release."""
    exact_below: Whole = Field(default=8000, ge=0)
    """A part of fewer rows, by the sample, is cut on all its rows: the fewer sampled rows decide a cut, the more it is
    off. 0 leaves to the sample whatever the tests allow."""

    @property
    def on_all_rows(self) -> RothkoT:
        """The algorithm that splits in the same way without a sample."""
        shared = {key: getattr(self, key) for key in Splits.model_fields if key != "name"}
        return RothkoT.model_construct(name="rothko-t", **shared)


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

    quality: Annotated[Quality, WrapValidator(_known_quality), PlainSerializer(str)] = "loss"
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


class Clustering(AlgorithmParameters):
    """A search that gathers at least k similar rows in a cluster, again and again."""

    recodes: ClassVar[Recodes] = Recodes.CLUSTERS
    blocks: Annotated[Literal["auto", "exact"] | int, BeforeValidator(_blocks)] = "auto"
    """The rows among which clusters are sought at once: `exact`, all of them, in quadratic time; a number, blocks of
    about so many neighbouring rows; `auto`, all rows of a small table, and blocks of a larger one."""
    refine: bool = Field(default=True, strict=True)
    """Afterwards neighbouring clusters exchange rows, in a bounded number of rounds, while that brings these nearer to
    their centres."""
    standardize: bool = Field(default=True, strict=True)
    """The unit of numbers in distances: the standard deviation of each (`true`), or the number as it is."""

    @property
    def refines(self) -> bool:
        """Tell whether clusters are refined."""
        return self.refine

    @property
    def gathering(self) -> str:
        """Name the method that gathers the rows."""
        return "mdav"

    @property
    def growth(self) -> float:
        """Tell how near a row must be to join a cluster of k: as a share of its distance to the nearest other row."""
        return 0.0

    def show_of(self, attribute: Attribute, is_numeric: bool) -> Show:
        if attribute.role is not Role.QUASI_IDENTIFIER or attribute.show is not Show.LABEL:
            return attribute.show
        if attribute.order is not None:
            return Show.MEDIAN
        return Show.MEAN if is_numeric else Show.MODE


class RGather(AlgorithmParameters):
    """Gathers at least k rows within a radius that is as small as can be in each cluster, and releases one row a
    cluster: its centre, how many rows it has, and its radius. A second table, `<table>_values`, tells how often each
    kept value occurs in each cluster. docs/r-gather.md says more."""

    sentence: ClassVar[str] = (
        "Rows were gathered around centres, and the release has one row a cluster: its centre, its rows, its radius."
    )
    recodes: ClassVar[Recodes] = Recodes.CLUSTERS
    releases_clusters: ClassVar[bool] = True
    hides_classes: ClassVar[str] = "r-gather releases clusters in place of rows"
    name: Literal["r-gather"]
    radius: Literal["least"] = "least"
    """`least`: the greatest radius is as small as the search finds, at most four times the least possible."""
    standardize: bool = Field(default=True, strict=True)
    """The unit of numbers in distances: the standard deviation of each (`true`), or the number as it is."""

    def show_of(self, attribute: Attribute, is_numeric: bool) -> Show:
        is_centre = attribute.role is Role.QUASI_IDENTIFIER and is_numeric
        return Show.MEAN if is_centre else attribute.show

    @property
    def suppresses(self) -> bool:
        return True


class Microaggregation(Clustering):
    """Gathers at least k similar rows in a cluster, again and again, and shows the centre of its cluster in place of
    every row: numbers stay numbers. docs/microaggregation.md says when clusters are better than regions."""

    sentence: ClassVar[str] = (
        "Similar rows were gathered in clusters, and every row shows the centre of its cluster in place of its values."
    )
    name: Literal["microaggregation"]
    method: Literal["mdav", "v-mdav"] = "mdav"
    """`mdav`: of the rows that are left, those nearest to the row farthest from their average, and those nearest to the
    row farthest from that one (Domingo-Ferrer, Torra, DMKD 2005). `v-mdav`: those nearest to the row farthest from the
    average, and up to k - 1 more that are near (Solanas, Martinez-Balleste, COMPSTAT 2006)."""
    gamma: Number | None = Field(default=None, ge=0, le=1000)
    """With v-mdav, 0.2 if not given: a row joins a cluster of at least k if its distance from the nearest row in it is
    less than `gamma` times that from the nearest other one without a cluster. 1.1 suits tables of dense groups."""
    keep: Literal["variance"] | None = None
    """`variance`: the means of clusters are stretched about the mean of their column until they have its variance."""

    @property
    def gathering(self) -> str:
        return self.method

    @property
    def growth(self) -> float:
        return GAMMA if self.gamma is None else self.gamma

    @property
    def kept_statistic(self) -> Literal["variance"] | None:
        return self.keep

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.gamma is not None and self.method != "v-mdav":
            raise broken(f"has gamma, which method: {self.method} does not use; v-mdav does.")
        return self


class Condensation(Clustering):
    """Gathers at least k similar rows in a group, and shows synthetic rows in their place, as many as there were: with
    the means, variances and covariances of the group, and its categories. docs/condensation.md says what that
    protects."""

    sentence: ClassVar[str] = (
        "Similar rows were gathered in groups, and each group was replaced by as many synthetic rows, drawn at random"
        " with its means, variances and covariances."
    )
    draws_numbers: ClassVar[bool] = True
    hides_classes: ClassVar[str] = "the models judge groups of source rows, and synthetic rows do not show their group"
    name: Literal["condensation"]
    groups: Literal["mdav", "nearest"] = "mdav"
    """The search for groups: `mdav` as in microaggregation; `nearest`, a random row and those nearest to it, again and
    again, not refined unless `refine: true` is written (Aggarwal, Yu, EDBT 2004)."""
    scale: Number = Field(default=1, ge=1, le=1000)
    """A group has at least `scale` times k rows, rounded up: larger ones protect more and keep less."""

    def rows_of(self, k: int) -> int:
        return math.ceil(self.scale * k)

    @property
    def gathering(self) -> str:
        return self.groups

    @property
    def refines(self) -> bool:
        return self.refine and (self.groups == "mdav" or "refine" in self.model_fields_set)


class PrivateCounts(AlgorithmParameters):
    """Noisy counts of all cells of a public domain."""

    recodes: ClassVar[Recodes] = Recodes.COUNTS
    is_private: ClassVar[bool] = True
    target: str | None = None
    """The attribute whose values are counted in every cell; it needs declared `values`."""
    as_: Literal["counts", "rows"] = Field(default="counts", alias="as")
    """The form of the release: `counts`, a row a cell with its noisy count; `rows`, each cell as many times as its
    noisy count says, not at all where that is below 1."""
    cells: Whole = Field(default=100_000, ge=1, le=MOST_CELLS)
    """The most cells that the release may have, empty ones included."""
    chooses: ClassVar[bool] = False
    """True if part of the budget is for choices."""


class DiffGen(PrivateCounts):
    """Specializes the attributes from the top of their hierarchies down, by choices that are differentially private,
    and counts the cells with noise (Mohammed, Chen, Fung, Yu, KDD 2011). docs/differential-privacy.md says more."""

    sentence: ClassVar[str] = (
        "Every column began as *; in each round a random choice, likely a good one, took one of its groups apart. The"
        " cells that came of it were counted, and random noise was added to every count."
    )
    chooses: ClassVar[bool] = True
    name: Literal["diffgen"]
    score: Literal["max", "information-gain"] = "max"
    """The worth of taking a group apart: `max`, the rows of the most frequent class in each part; `information-gain`,
    which needs much more data for the same noise."""
    specializations: Whole = Field(default=10, ge=0, le=1000)
    """The rounds. It is a public choice: to tune it on the data would have to be paid for."""
    variant: Literal["joint", "published"] = "joint"
    """`joint`: group and cut are chosen at once, by a mechanism that adding rows favours; `published`: one after the
    other, as in the paper, with more noise."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.score == "information-gain" and self.target is None:
            raise broken("must have a target with score: information-gain.")
        return self


class Contingency(PrivateCounts):
    """Counts every combination of the declared values, with noise: for few columns with few values."""

    sentence: ClassVar[str] = "Every combination of the declared values was counted, and random noise was added."
    name: Literal["contingency"]


FullDomain = Incognito | Samarati | BottomUp | Optimal | Datafly
Tree = Mondrian | RothkoT
_Own = Annotated[
    Mondrian
    | RothkoT
    | RothkoS
    | TopDown
    | FullDomain
    | Microaggregation
    | RGather
    | Condensation
    | DiffGen
    | Contingency,
    Field(discriminator="name"),
]
OWN_ALGORITHMS: Mapping[str, type[AlgorithmParameters]] = {
    get_args(part.model_fields["name"].annotation)[0]: part for part in get_args(get_args(_Own)[0])
}
"""The program's own algorithms by name."""

_REGISTRY = Registry(ALGORITHMS, "name", AlgorithmParameters, OWN_ALGORITHMS)
algorithm_names = _REGISTRY.names
parameters_of_algorithm = _REGISTRY.parameters_of
Algorithm = Annotated[SerializeAsAny[_Own], WrapValidator(_REGISTRY.validate)]


def seed_of(algorithm: AlgorithmParameters) -> int | None:
    """The seed that the samples of an algorithm depend on; None where it draws none."""
    return getattr(algorithm, "seed", None)
