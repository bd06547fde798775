"""Randomization of columns: what each column may be told, and the rules between the keys of such a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag, model_validator

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import Role
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy
from sqlanon.policy.part import Number, Part, Reference, broken, different
from sqlanon.policy.registry import ModelParameters
from sqlanon.policy.unused import WithoutClasses
from sqlanon.support.suggest import did_you_mean

MOST_VALUES = 1000  # of a column whose responses are randomized


MOST_K = 1000  # rows that are expected to fit an uncertain value


MOST_EPSILON = 10  # of one column: noise of a scale that is smaller hides nothing


_MOST_EPSILON_OF_ROW = 100


_MOST_PARTS = 10**9  # of all values, that a share is a multiple of


_SIZES = ("deviation", "half-width", "scale", "epsilon", "interval-privacy")


_SIZE_OF = {"gaussian": "deviation", "uniform": "half-width", "laplace": "scale"}


_PARTS = WithoutClasses(
    algorithm="randomize",
    model="randomization",
    release="a release with noise",
    file="two tables are released, the rows and what was added to them; export them afterwards.",
    url="write tables of the source's database; they can be copied afterwards.",
)


class ColumnNoise(Part):
    """Noise that is added to the numbers of a column; its size is told by one key."""

    noise: Literal["gaussian", "uniform", "laplace"]
    """The distribution of the noise, whose mean is 0."""
    deviation: Number | None = Field(default=None, gt=0)
    """The standard deviation of gaussian noise, in the unit of the column."""
    half_width: Number | None = Field(default=None, gt=0, alias="half-width")
    """The greatest uniform noise: it lies between this number and its negative."""
    scale: Number | None = Field(default=None, gt=0)
    """The scale of Laplace noise, whose standard deviation is 1.41 times as large."""
    epsilon: Number | None = Field(default=None, gt=0, le=MOST_EPSILON)
    """The local differential privacy of Laplace noise: two values of the range differ by a factor of e to the epsilon
    at most in the probability of whatever is released. It needs `range`."""
    interval_privacy: Number | None = Field(default=None, gt=0, le=100, alias="interval-privacy")
    """The width of the interval in which a value is known to lie with the stated confidence, as a share of `range`
    (Agrawal, Srikant, SIGMOD 2000): 1 for all of it, 0.5 for half of it."""
    confidence: Number | None = Field(default=None, gt=0, lt=1)
    """The confidence of interval-privacy; 0.95 if not given."""
    range: tuple[Number, Number] | None = None
    """The least and the greatest value of the column, as `[0, 120]`; rows with others are refused."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sizes = {
            "deviation": self.deviation,
            "half-width": self.half_width,
            "scale": self.scale,
            "epsilon": self.epsilon,
            "interval-privacy": self.interval_privacy,
        }
        given = [key for key in _SIZES if sizes[key] is not None]
        allowed = [_SIZE_OF[self.noise], *(["epsilon"] if self.noise == "laplace" else []), "interval-privacy"]
        if len(given) != 1 or given[0] not in allowed:
            raise broken(f"must tell the size of {self.noise} noise by one of {', '.join(allowed)}.")
        if self.range is not None and not self.range[0] < self.range[1]:
            raise broken("must have a range of two numbers, the lesser first.")
        if given[0] in ("epsilon", "interval-privacy") and self.range is None:
            raise broken(f"must have a range, the least and the greatest value, with {given[0]}.")
        if self.confidence is not None and given[0] != "interval-privacy":
            raise broken("has confidence, which is that of interval-privacy; leave it out.")
        return self


def _different(given: object) -> object:
    return different(given, 2, MOST_VALUES)


class RandomizedResponse(Part):
    """Randomized response: a value is kept with a probability, and else replaced by another one, each as likely."""

    response: Literal["keep"]
    """`keep`: the true value is the likeliest of all (k-ary randomized response; Kairouz, Bonawitz, Ramage, ICML
    2016)."""
    epsilon: Number = Field(gt=0, le=MOST_EPSILON)
    """The local differential privacy: a value is kept with probability e^epsilon / (e^epsilon + k - 1)."""
    values: Annotated[tuple[str, ...], BeforeValidator(_different)]
    """The k values of the column; rows with others are refused."""


class TransitionMatrix(Part):
    """Post-randomization (PRAM): a value becomes another one, or stays, by the probabilities of a matrix (Gouweleeuw,
    Kooiman, Willenborg, de Wolf, Journal of Official Statistics, 1998)."""

    transition: Reference = Field(min_length=1)
    """A file of the matrix, relative to the policy. Its first line has a text and then the values of the column, every
    other one a value and the probabilities by which it becomes each of them: decimals that add up to 1. Rows with
    other values are refused."""


class ValueSwap(Part):
    """Data swapping: values of the column are exchanged between rows, so that it keeps its distribution exactly
    (Dalenius, Reiss, Journal of Statistical Planning and Inference, 1982)."""

    swap: Number = Field(gt=0, le=1)
    """The share of the rows that exchange their value with another one: so many rows, drawn at random, are paired at
    random. It has no epsilon."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.share.denominator > _MOST_PARTS:
            raise broken("has a share of more than nine decimals; round it.")
        return self

    @property
    def share(self) -> Fraction:
        """The decimal number that the policy says, as a fraction."""
        return Fraction(repr(self.swap))


class UncertainValues(Part):
    """Uncertain values: each number with noise whose size is that of its neighbourhood in the column, and is released
    in a column of its own, so that k rows are expected to fit the released pair at least as well as the true row
    (Aggarwal, ICDE 2008)."""

    condition: Literal["uncertain"]
    """`uncertain`: numbers have noise of sizes of their own."""
    k: int = Field(ge=2, le=MOST_K)
    """The number of rows, the true one among them, that are expected to fit."""
    error: Literal["gaussian", "uniform"] = "gaussian"
    """The distribution of the noise: `gaussian`, whose deviation is in `<column>_deviation`, or `uniform`, whose
    greatest amount is in `<column>_half_width`."""
    unit: Number | None = Field(default=None, gt=0)
    """The least difference of two released numbers of a column of floats, which the next lower power of two is taken
    for; other numbers have one by their type."""


ColumnChange = ColumnNoise | RandomizedResponse | TransitionMatrix | ValueSwap | UncertainValues


COLUMN_PARTS: Mapping[str, type[Part]] = {
    "noise": ColumnNoise,
    "response": RandomizedResponse,
    "transition": TransitionMatrix,
    "swap": ValueSwap,
    "condition": UncertainValues,
}


"""Parts of the grammar by the key that only one of them has."""


def _kind_of(given: object) -> str | None:
    """Tell the kind of randomization by the key that only it has; None where there is not one such key."""
    if isinstance(given, Part):
        return next((kind for kind, part in COLUMN_PARTS.items() if type(given) is part), None)
    kinds = [kind for kind in COLUMN_PARTS if isinstance(given, Mapping) and kind in given]
    return kinds[0] if len(kinds) == 1 else None


def column_part(given: object) -> type[Part] | None:
    """Find the part of the grammar that an entry of `columns` is of; None where none of its keys tells."""
    kind = _kind_of(given)
    return None if kind is None else COLUMN_PARTS[kind]


RandomizedColumn = Annotated[
    Annotated[ColumnNoise, Tag("noise")]
    | Annotated[RandomizedResponse, Tag("response")]
    | Annotated[TransitionMatrix, Tag("transition")]
    | Annotated[ValueSwap, Tag("swap")]
    | Annotated[UncertainValues, Tag("condition")],
    Discriminator(_kind_of),
]


class Randomize(AlgorithmParameters):
    """Adds noise to numbers, randomizes categories, or swaps values between rows, by distributions that are released
    too, so that readers can reconstruct what is hidden: distributions, not rows. docs/randomization.md says more."""

    recodes: ClassVar[Recodes] = Recodes.NOISE
    choices_at: ClassVar[Mapping[str, Mapping[str, type[BaseModel]]]] = {"columns": COLUMN_PARTS}
    files_at: ClassVar[Mapping[str, str]] = {"columns": "transition"}
    sentence: ClassVar[str] = (
        "Values of the randomized columns were changed at random, by distributions that are released beside the rows."
    )
    name: Literal["randomize"]
    columns: Annotated[dict[str, RandomizedColumn], Field(min_length=1)]
    """The randomized columns, each with its noise, as `{age: {noise: gaussian, deviation: 10}}`."""


class RandomizationParameters(ModelParameters):
    """Single values are hidden by noise of a known distribution, which lets readers reconstruct distributions alone."""

    is_mechanism: ClassVar[bool] = True
    model: Literal["randomization"]
    epsilon: Number | None = Field(default=None, gt=0, le=_MOST_EPSILON_OF_ROW)
    """The greatest local differential privacy of a row, over all randomized columns together; a policy with a column
    that has none, such as one with gaussian noise, is refused then."""


def randomization_of(policy: Policy) -> Randomize:
    """Return the algorithm of a policy that randomizes columns."""
    assert isinstance(policy.algorithm, Randomize)
    return policy.algorithm


def randomized_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with the randomization of columns, or only with it.

    place: writes the path of a key for people.
    """
    yield from _PARTS.model_problems(policy, place)
    if policy.algorithm.recodes is Recodes.NOISE:
        yield from _PARTS.unused_problems(policy, place)
        yield from _column_problems(policy, place)


def _column_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    columns = randomization_of(policy).columns
    for name in columns:
        path = place(("algorithm", "columns", name))
        attribute = policy.attributes.get(name)
        if attribute is None:
            yield f"{path}: it is not among the attributes; {did_you_mean(name, policy.attributes)}"
        elif attribute.role.leaves_out:
            yield f"{path}: it is left out of the release (role: {attribute.role.value}); leave it out here too."
    for name, attribute in policy.attributes.items():
        path = place(("attributes", name))
        if attribute.role is Role.QUASI_IDENTIFIER and name not in columns:
            yield (
                f"{path}: a quasi-identifier would be released as it is; randomize it (algorithm.columns), or say that"
                " nobody can be recognized by it (role: insensitive)."
            )
