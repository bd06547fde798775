"""A policy's statements about a table's columns: roles, hierarchies, and the form in which the release shows them."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self, TypeGuard

from pydantic import BeforeValidator, Field, SerializeAsAny, WrapValidator, create_model, model_validator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from sqlanon.policy.keys import Key
from sqlanon.policy.part import Number, Part, Reference, Whole, broken, different
from sqlanon.support.plugins import HIERARCHIES, find_plugins, load_parameters

DATE_LEVELS = ("day", "week", "month", "quarter", "year", "decade")
SET_LIMITS = {"list": 100, "auto": 12, "range": 1}  # members; larger sets are shown by their ends
MOST_ORDERED = 1000  # categories
MOST_VALUES = 10_000  # of a declared domain
MOST_STEPS = 100_000  # of a declared domain of numbers
HIERARCHY_KINDS = ("mask", "date", "intervals", "csv", "mapping", "suppress")


class Role(StrEnum):
    """The part of a column in privacy."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"
    OMIT = "omit"

    @property
    def leaves_out(self) -> bool:
        """Tell whether columns are left out of the release, but for identifiers that it shows as pseudonyms."""
        return self in (Role.IDENTIFIER, Role.OMIT)


class Show(StrEnum):
    """The form in which the release shows the region of a numeric or ordered quasi-identifier."""

    LABEL = "label"  # [25-34]
    BOUNDS = "bounds"  # two columns: <name>_min, <name>_max
    MEAN = "mean"
    MIDPOINT = "midpoint"
    RANGE = "range"  # PostgreSQL's range types
    MEDIAN = "median"  # of clusters, as all that follow: of categories in an order
    CONVEX_MEDIAN = "convex-median"
    MODE = "mode"
    PSEUDONYM = "pseudonym"  # of identifiers, as all that follow
    SURROGATE = "surrogate"
    CONSTANT = "constant"  # one text for all values
    MASK = "mask"  # first and last characters, and `*` for each of the others
    FAKED = "faked"  # a text of word lists, by a secret key
    NULL = "null"
    SHIFTED = "shifted"  # of dates and moments that are kept: all of a person by one secret number of days

    @property
    def is_mask(self) -> bool:
        """Tell whether only identifiers are shown by it."""
        return self in (Show.PSEUDONYM, Show.SURROGATE, Show.CONSTANT, Show.MASK, Show.FAKED, Show.NULL)

    @property
    def tells_apart(self) -> bool:
        """Tell whether different values of an identifier are shown as different ones."""
        return self in (Show.PSEUDONYM, Show.SURROGATE)

    @property
    def is_keyed(self) -> bool:
        """Tell whether it follows from a value and a secret key of the policy."""
        return self in (Show.PSEUDONYM, Show.FAKED, Show.SHIFTED)

    @property
    def is_centre(self) -> bool:
        """Tell whether only clusters are shown by it."""
        return self in (Show.MEDIAN, Show.CONVEX_MEDIAN, Show.MODE)


_NUMBERS = (Show.BOUNDS, Show.MEAN, Show.MIDPOINT, Show.RANGE)


class Hierarchy(Part):
    """A generalization hierarchy; exactly one of mask, date, intervals, csv, mapping, suppress is given."""

    mask: Literal["left", "right"] | None = None
    """Text: level n replaces n characters from this side by `*`."""
    length: Whole | None = Field(default=None, ge=1)
    """With mask: the characters that values count as having, so that levels mean the same whatever values there are;
    without it those of the longest value."""
    date: tuple[Literal["day", "week", "month", "quarter", "year", "decade"], ...] | None = None
    """Dates and timestamps: the levels, from fine to coarse."""
    intervals: tuple[Whole | Number, ...] | None = None
    """Numbers: the widths of the intervals, from narrow to wide."""
    origin: Whole | Number = 0
    """A boundary of the intervals, from which all others are counted."""
    csv: Reference | None = None
    """A file of lines `value;level 1;...;*`, the format that ARX reads and writes."""
    mapping: dict[str, str | tuple[str, ...]] | None = None
    """Each value with its label, or with its labels from level 1 up."""
    suppress: Annotated[bool, Field(strict=True)] = False
    """The value itself, or `*`; `hierarchy: suppress` is short for it."""
    unknown: str | None = None
    """With csv and mapping: the label of the group of all values they lack. Without it, such values are an error."""

    added: ClassVar[tuple[str, ...]] = ()
    """The kind that an installed package adds, where it is of one."""

    @property
    def kind(self) -> str:
        """The one of the six kinds that the hierarchy is of."""
        return self.kinds[0]

    @property
    def kinds(self) -> list[str]:
        """The kinds given; a valid hierarchy has one."""
        given = {name: getattr(self, name) for name in (*HIERARCHY_KINDS, *self.added)}
        return [name for name, value in given.items() if value is not None and value is not False]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.kinds) != 1:
            raise broken(f"must hold exactly one of {', '.join((*HIERARCHY_KINDS, *self.added))}.")
        if "origin" in self.model_fields_set and self.intervals is None:
            raise broken("has an origin, which only intervals have.")
        if self.unknown is not None and self.kind not in ("csv", "mapping"):
            raise broken("has unknown, which only csv and mapping have.")
        if self.length is not None and self.mask is None:
            raise broken("has length, which only mask has.")
        self._check_levels()
        return self

    def _check_levels(self) -> None:
        if self.date is not None:
            order = [DATE_LEVELS.index(level) for level in self.date]
            if not order or order != sorted(set(order)):
                raise broken(f"must list date levels from fine to coarse, each once: {', '.join(DATE_LEVELS)}.")
        if self.intervals is not None and not _ascending(self.intervals):
            raise broken("must list interval widths that are positive and grow.")
        if self.mapping is not None:
            depths = {1 if isinstance(labels, str) else len(labels) for labels in self.mapping.values()}
            if len(depths) != 1 or 0 in depths:
                raise broken("must map every value to the same number of levels, at least one.")


class HierarchyParameters(Part):
    """The parameters of a kind of hierarchy that an installed package adds."""


def hierarchy_kinds() -> list[str]:
    """List the names of all kinds of hierarchies, those of installed packages last."""
    return [*HIERARCHY_KINDS, *(name for name in find_plugins(HIERARCHIES) if name not in Hierarchy.model_fields)]


def parameters_of_hierarchy(name: str) -> type[HierarchyParameters]:
    """Find the parameters of a kind of hierarchy that an installed package adds.

    Raises PolicyError where it can't be loaded.
    """
    parameters = load_parameters(HIERARCHIES, name, HierarchyParameters)
    assert parameters is not None
    return parameters


@functools.cache
def _with_kind(name: str, parameters: type[HierarchyParameters]) -> type[Hierarchy]:
    """Make the class of hierarchies of a kind that a package adds: its name is a key, its parameters the value."""
    made = create_model("AddedHierarchy", __base__=Hierarchy, **{name: (parameters, ...)})  # type: ignore[call-overload]
    made.added = (name,)
    return made


def _validate_hierarchy(given: Any, own: ValidatorFunctionWrapHandler) -> Any:
    """Validate a hierarchy by the keys of its kind, whoever adds it."""
    unknown = [key for key in given if key not in Hierarchy.model_fields] if isinstance(given, Mapping) else []
    added = [key for key in unknown if isinstance(key, str) and key in find_plugins(HIERARCHIES)]
    return _with_kind(added[0], parameters_of_hierarchy(added[0])).model_validate(given) if added else own(given)


def _ascending(widths: tuple[float | int, ...]) -> bool:
    return bool(widths) and widths[0] > 0 and all(low < high for low, high in pairwise(widths))


class Quantile(Part):
    """A number out of the table: the least that so large a share of a column's finite numbers does not exceed."""

    quantile: Number = Field(gt=0, lt=1)
    """The share, such as 0.995."""


def _limit(given: object) -> object:
    """Refuse what is neither a number nor a quantile, in one sentence."""
    share = given.get("quantile") if isinstance(given, dict) and list(given) == ["quantile"] else None
    if given is None or isinstance(given, Quantile) or _is_number(given) or (_is_number(share) and 0 < share < 1):
        return given
    raise broken("must be a number, or {quantile: …} with a share between 0 and 1.")


def _is_number(given: Any) -> TypeGuard[float]:
    most = sys.float_info.max  # what no double is, a whole number may be
    return isinstance(given, (int, float)) and not isinstance(given, bool) and -most <= given <= most


Limit = Annotated[Whole | Number | Quantile | None, BeforeValidator(_limit)]


def _order(given: object) -> object:
    """Take the texts of at least two different values, in their order."""
    return different(given, 2, MOST_ORDERED)


def _values(given: object) -> object:
    """Take the texts of different values; their order has no meaning."""
    return different(given, 1, MOST_VALUES)


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 2**63


class Domain(Part):
    """The numbers that a column may hold, declared and never looked up in the data."""

    from_: Whole | Number = Field(alias="from")
    """The least number; lesser ones count as it."""
    below: Whole | Number
    """The number that all are below; those from it on count as the last step."""
    step: Whole | Number = 1
    """The width of the steps between which ranges may be cut."""

    @property
    def first(self) -> Fraction:
        """The least number, as the policy writes it."""
        return Fraction(repr(self.from_))

    @property
    def width(self) -> Fraction:
        """The width of a step, as the policy writes it."""
        return Fraction(repr(self.step))

    @property
    def steps(self) -> int:
        """Count the steps; the last one may be shorter."""
        return math.ceil((Fraction(repr(self.below)) - self.first) / self.width)

    @model_validator(mode="before")
    @classmethod
    def _check_numbers(cls, given: Any) -> Any:
        keys = ("from", "below", "step")
        if isinstance(given, dict) and not all(_is_finite(given[key]) for key in keys if key in given):
            raise broken(
                "must have finite numbers as from, below and step. Dates have no such domain: list days as values, or"
                " number days or months in a view, such as day - DATE '2020-01-01', and declare the domain of these"
                " numbers."
            )
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.step <= 0 or not self.from_ < self.below:
            raise broken("must go from a number to one that is greater (below), in steps greater than 0.")
        if not 2 <= self.steps <= MOST_STEPS:
            raise broken(f"must have 2 to {MOST_STEPS:,} steps; choose another step.")
        return self


class AttributeSection(Part):
    """The policy's statements about one column."""

    role: Role
    """The part of the column in privacy. An `identifier` names persons: it is left out, and rows of one value are of
    one person. A `quasi-identifier`, which others may know of a person, is generalized. A `sensitive` column is kept,
    and protected by the models; an `insensitive` one is kept. With `omit` a column is left out, and nothing else is
    asked of it."""
    hierarchy: Annotated[SerializeAsAny[Hierarchy] | None, WrapValidator(_validate_hierarchy)] = None
    """The generalization of a quasi-identifier; without a hierarchy numbers, dates and enums are cut into ranges and
    texts into sets."""
    show: Show = Show.LABEL
    """The form of a region in the release: `label` as text, `bounds` as two columns `<name>_min` and `<name>_max`,
    `mean` and `midpoint` as a number, `range` as a range type of PostgreSQL. Microaggregation shows centres of
    clusters: the `mean` of numbers, the `median` or `convex-median` of categories in an `order`, or else the `mode`. An
    identifier is left out, or shown as a `pseudonym` by a secret key, as a `surrogate`, a number at random, as a
    `constant`, the text of that key, as a `mask`, which keeps its `first` and `last` characters, `faked`, by word lists
    and a secret key, or as `null`. With `algorithm: masking` kept dates and moments may be `shifted`, all of a person
    by one secret number of days. docs/masking.md says what each tells."""
    key: Key = None
    """Pseudonyms, faked and shifted values: the place of the secret key of at least 16 bytes, `"${NAME}"` in the
    environment or `{file: …}`. One value is shown alike in every release by one key. `drawn`: a key that is drawn for
    one release and kept nowhere."""
    constant: str | None = None
    """With `show: constant`: the text that is shown for every value but NULL."""
    first: Annotated[int, Field(strict=True, ge=0, le=100)] = 0
    """With `show: mask`: the characters at the beginning of a value that are shown."""
    last: Annotated[int, Field(strict=True, ge=0, le=100)] = 0
    """With `show: mask`: the characters at the end of a value that are shown. A value of no more characters than
    `first` and `last` together shows none."""
    person: Annotated[str, Field(min_length=1)] | None = None
    """With `show: shifted`: the identifier whose values are the persons; the release may show it or leave it out."""
    days: Annotated[int, Field(strict=True, ge=1, le=36_500)] | None = None
    """With `show: shifted`: the most days by which a person's dates are moved, into the past or the future; every
    number of days but 0 is as likely. One person, key and `days` give one number in all tables and columns."""
    fake: Literal["first-name", "last-name", "name", "e-mail", "phone", "address", "city"] | None = None
    """With `show: faked`: the kind of the text. E-mails are in domains, and phone numbers in ranges, that are reserved
    for examples; addresses have postal codes that are given to no place."""
    form: Literal["text", "bytes"] = "text"
    """Pseudonyms: their 128 bits as `text`, 32 hexadecimal digits, or as 16 `bytes` (DuckDB: BLOB, PostgreSQL:
    bytea)."""
    as_: Literal["text"] | None = Field(default=None, alias="as")
    """Kept columns in a Parquet file or another database: `text`, the text that the source's engine writes of a value,
    for a type or for values that the release can't hold otherwise. A CSV file has that text anyway."""
    order: Annotated[tuple[str, ...] | None, BeforeValidator(_order)] = None
    """Microaggregation: all values of a column of categories, from the least to the greatest, as `[A, B, C, D]`."""
    nulls: Literal["allow", "unknown", "nothing", "value", "refuse", "each"] = "allow"
    """The meaning of NULL in the column. `refuse`: an error, before any work. Elsewhere it is allowed, and a value of
    its own. A sensitive attribute, where `nothing` is the default, says what NULL is to l-diversity: `nothing`, it adds
    none; or a `value` like any other. A quasi-identifier with `show: bounds`, `mean`, `midpoint` or `range` is NULL in
    all rows of a class that holds NULL with `unknown`, the default there; with `allow` it shows numbers of the known
    values. Of the `subject` NULL is refused; with `each`, each row in which it is NULL is of another person."""
    bottom: Limit = None
    """Numbers: the release tells lesser ones apart no further; `{quantile: 0.005}` takes the number from the table."""
    top: Limit = None
    """Numbers: the release tells greater ones apart no further; `{quantile: 0.995}` takes the number from the table."""

    domain: Domain | None = None
    """Differential privacy, numbers: `{from: 17, below: 91, step: 1}`. It is declared, as the least and the greatest
    number of the data would tell of single rows."""
    values: Annotated[tuple[str, ...] | None, BeforeValidator(_values)] = None
    """Differential privacy, categories without a hierarchy: the values that are told apart, as `[yes, no]`; all others
    are shown as `OTHER`."""
    sets: Literal["list", "auto", "range"] = "list"
    """The form of a set of texts: its members, up to 100 of them with `list` and up to 12 with `auto`; of larger sets,
    and with `range` of all sets of two and more, the first and the last member: `["Abbey Road"-"Baker Street"]`."""

    @property
    def set_limit(self) -> int:
        """The members that a set is shown by at most."""
        return SET_LIMITS[self.sets]

    @property
    def is_omitted(self) -> bool:
        """Tell whether a release has nothing of the column."""
        return self.role.leaves_out and not self.show.is_mask

    @property
    def hides_nulls(self) -> bool:
        """Tell whether classes that hold NULL show nothing but NULL."""
        return self.nulls == "unknown"

    @model_validator(mode="before")
    @classmethod
    def _protect(cls, given: Any) -> Any:
        """Write defaults that are not `allow` out, so that they are stored: a catalog may be older than them."""
        if not isinstance(given, dict):
            return given
        if "show" in given and given["show"] is None:  # as YAML reads `show: null`
            given = {**given, "show": Show.NULL.value}
        if "nulls" in given:
            return given
        if given.get("role") == Role.SENSITIVE:
            return {**given, "nulls": "nothing"}
        is_number = given.get("role") == Role.QUASI_IDENTIFIER and given.get("show", Show.LABEL) in _NUMBERS
        return {**given, "nulls": "unknown"} if is_number else given

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.role is Role.OMIT and self.model_dump(exclude_defaults=True).keys() != {"role"}:
            raise broken("has role omit, which goes with no other key.")
        if self.role is Role.SENSITIVE and self.nulls == "allow":
            raise broken("allows NULL: say whether it counts for l-diversity, as nulls: nothing or nulls: value.")
        if self.role is not Role.SENSITIVE and self.nulls in ("nothing", "value"):
            raise broken(f"has nulls: {self.nulls}, which an attribute with role {self.role.value} does not use.")
        if self.nulls == "each" and self.role is not Role.IDENTIFIER:
            raise broken(f"has nulls: each, which an attribute with role {self.role.value} does not use.")
        if self.nulls == "unknown" and (self.role is not Role.QUASI_IDENTIFIER or self.show not in _NUMBERS):
            raise broken("has nulls: unknown, which is for numbers: labels say themselves whether a class holds NULL.")
        if self.hierarchy is not None and self.role not in (Role.QUASI_IDENTIFIER, Role.SENSITIVE):
            raise broken(f"has a hierarchy, which an attribute with role {self.role.value} does not use.")
        self._check_show()
        if self.order is not None and self.role is not Role.QUASI_IDENTIFIER:
            raise broken(f"has an order, which an attribute with role {self.role.value} does not use.")
        if self.sets != "list" and (self.role is not Role.QUASI_IDENTIFIER or self.show is not Show.LABEL):
            raise broken("has sets, which only labels of quasi-identifiers have.")
        if self.as_ is not None and self.role not in (Role.SENSITIVE, Role.INSENSITIVE):
            raise broken(f"has as: {self.as_}, which an attribute with role {self.role.value} does not use.")
        for key in ("bottom", "top"):
            if getattr(self, key) is not None and self.role is not Role.QUASI_IDENTIFIER:
                raise broken(f"has {key}, which an attribute with role {self.role.value} does not use.")
        ends = (self.bottom, self.top)
        if all(isinstance(end, (int, float)) for end in ends) and not self.bottom < self.top:  # type: ignore[operator]
            raise broken("has a bottom that is not below its top.")
        return self

    def _check_show(self) -> None:
        identifies = self.role is Role.IDENTIFIER
        if self.show.is_mask and not identifies:
            raise broken(f"has show: {self.show.value}, which is for role identifier, not {self.role.value}.")
        self._check_mask()
        if self.show is Show.SHIFTED and self.role not in (Role.SENSITIVE, Role.INSENSITIVE):
            raise broken(f"has show: shifted, which is for columns that are kept, not for role {self.role.value}.")
        of_others = self.show.is_mask or self.show is Show.SHIFTED
        if self.show is not Show.LABEL and self.role is not Role.QUASI_IDENTIFIER and not of_others:
            raise broken(f"has show, which an attribute with role {self.role.value} does not use.")
        if self.show.is_keyed and self.key is None:
            raise broken(f'has show: {self.show.value} and no key; name the place of one, as key: "${{SQLANON_KEY}}".')
        if not self.show.is_keyed and self.key is not None:
            raise broken("has a key, which only show: pseudonym, show: faked and show: shifted use.")
        if self.show is not Show.PSEUDONYM and self.form != "text":
            raise broken(f"has form: {self.form}, which only show: pseudonym uses.")

    def _check_mask(self) -> None:
        """Refuse keys of one mask beside another one, and a mask without what it needs."""
        of = {"constant": Show.CONSTANT, "first": Show.MASK, "last": Show.MASK, "fake": Show.FAKED}
        of |= {"person": Show.SHIFTED, "days": Show.SHIFTED}
        for key, show in of.items():
            if key in self.model_fields_set and self.show is not show:
                raise broken(f"has {key}, which only show: {show.value} uses.")
        if self.show is Show.CONSTANT and self.constant is None:
            raise broken('has show: constant and no constant; write the text that is shown, as constant: "hidden".')
        if self.show is Show.FAKED and self.fake is None:
            raise broken("has show: faked and no fake; write the kind of text that is shown, as fake: name.")
        if self.show is Show.SHIFTED and (self.person is None or self.days is None):
            raise broken("has show: shifted, which needs person, the identifier whose dates move together, and days.")
        if self.show is Show.MASK and not {"first", "last"} & self.model_fields_set:
            raise broken("has show: mask and neither first nor last; write how many characters stay, as last: 2.")
