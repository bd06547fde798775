"""Problems of a policy whose algorithm gathers rows in clusters: which columns have centres, and which values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.models import models_of
from sqlanon.policy import AlgorithmParameters, AttributeSection, Policy, Recodes, Role, Show
from sqlanon.policy.document import path_text
from sqlanon.sql import Identifier, RedactedValue, Relation
from sqlanon.support.quantities import rows_hold
from sqlanon.values.expressions import comparable, double_of, text_of

MOST_GATHERED = 20_000  # rows, of which all pairs are compared
GATHERED_COLUMNS = ("cluster", "rows", "radius")  # beside the centre
MOST_STRATA = 1_000  # values of a target, each of which is divided into blocks by itself
MOST_NUMBERS = 28  # whose covariances and factors a row of 8 kB, the most of PostgreSQL, can hold
LARGEST = 1e150  # numbers whose squares doubles can hold
LARGEST_STREAMED = 1e45  # numbers that the search for an eigenvector can multiply six times
_CENTRED = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.TEXT, Kind.BOOLEAN, Kind.UUID, Kind.ENUM)


@dataclass(frozen=True)
class Uncountable:
    """The rows in which a column holds nothing that clusters can reckon with.

    infinite, huge (beyond `largest`): of numbers; unordered: of categories that the policy's order lacks.
    is_constant: whether all numbers are equal.
    """

    nulls: int
    infinite: int
    huge: int
    unordered: int
    is_constant: bool = False
    largest: float = LARGEST


@dataclass(frozen=True)
class Strata:
    """The values of a target, and those with fewer than the k rows of a cluster."""

    values: int
    small: int
    k: int


def measure_strata(engine: Engine, source: Relation, policy: Policy, columns: Sequence[Column]) -> Strata | None:
    """Count the values of the target that clusters may not mix; None where there is none."""
    name = policy.algorithm.stratified_by
    column = next((one for one in columns if one.name == name), None)
    if column is None:
        return None
    k = policy.algorithm.rows_of(max(model.least_rows for model in models_of(policy)))
    value = comparable(engine, Markup(Identifier(column.name)), column.kind)
    values, small = engine.query_one("plan/count_strata", source=source, value=value, k=k)
    return Strata(int(values), int(small), k)


def measure_uncountable(
    engine: Engine, source: Relation, policy: Policy, columns: Sequence[Column], largest: float = LARGEST
) -> dict[str, Uncountable]:
    """Count the values of quasi-identifiers that clusters can't reckon with, in one scan; none for other algorithms."""
    given = {column.name: policy.attributes.get(column.name) for column in columns}
    looked_at = [
        (column, attribute)
        for column in columns
        if (attribute := given[column.name]) is not None
        and attribute.role is Role.QUASI_IDENTIFIER
        and attribute.hierarchy is None
        and (column.kind.is_numeric or attribute.order is not None)
    ]
    if policy.algorithm.recodes is not Recodes.CLUSTERS or not looked_at:
        return {}
    counts = engine.query_one(
        "plan/count_uncountable",
        source=source,
        largest=largest,
        columns=[_counted(engine, column, attribute) for column, attribute in looked_at],
    )
    by_column = zip(*[map(int, counts)] * 5, strict=True)
    return {
        column.name: Uncountable(nulls, infinite, huge, unordered, bool(constant), largest)
        for (column, _), (nulls, infinite, huge, unordered, constant) in zip(looked_at, by_column, strict=True)
    }


def _counted(engine: Engine, column: Column, attribute: AttributeSection) -> dict[str, Any]:
    """The values of one column for the statement that counts."""
    value = Markup(Identifier(column.name))
    return {
        "value": value,
        "is_continuous": attribute.order is None,
        "is_finite": engine.render.macro("is_finite_number", value, column.kind.value),
        "number": double_of(engine.render, value, column.kind) if column.kind.is_numeric else value,
        "text": text_of(engine.render, value, column.kind, column.type),
        "order": [RedactedValue(text) for text in attribute.order or ()],
    }


def cluster_problems(
    policy: Policy,
    attributes: Sequence[tuple[Column, AttributeSection]],
    rows: int,
    uncountable: Mapping[str, Uncountable],
    strata: Strata | None,
) -> Iterator[str]:
    """Say what keeps rows from being gathered in clusters, and what only clusters use."""
    name, clusters = policy.algorithm.name, policy.algorithm.recodes is Recodes.CLUSTERS
    for column, attribute in attributes:
        place = path_text(("attributes", column.name))
        if attribute.role is not Role.QUASI_IDENTIFIER:
            continue
        if not clusters:
            yield from (f"{place}: {problem}" for problem in _foreign_problems(name, attribute))
            continue
        yield from (f"{place}: {problem}" for problem in column_problems(policy.algorithm, column, attribute))
        yield from (f"{place}: {problem}" for problem in value_problems(uncountable.get(column.name)))
    algorithm = policy.algorithm
    if algorithm.releases_clusters:
        yield from gathering_problems(policy, [column for column, _ in attributes], rows)
        return
    if algorithm.draws_numbers:
        yield from condensation_problems(attributes)
        yield from _strata_problems(policy, attributes, strata)
    if clusters and algorithm.suppresses:
        yield from _suppression_problems(policy)
    if clusters and algorithm.kept_statistic and not _count_numbers(attributes):
        kept = algorithm.kept_statistic
        yield f"algorithm.keep: {kept} is one of numbers, and no quasi-identifier is one; leave it out."
    generalizes = algorithm.takes_hierarchies and any(one.hierarchy is not None for _, one in _quasi(attributes))
    if clusters and algorithm.refines and generalizes:
        yield "algorithm.refine: refinement lessens variance, and groups of a hierarchy have none; leave refine out."
    yield from algorithm.size_problems(rows)
    k = algorithm.rows_of(max((model.least_rows for model in models_of(policy)), default=1))
    if clusters and k <= rows < 2 * k:
        yield (
            f"algorithm: {name} needs at least {2 * k} rows for clusters of {k}, and the table holds {rows}: all of"
            " them would be one. Ask for a smaller k, or take more rows together."
        )


def cluster_warnings(
    policy: Policy, attributes: Sequence[tuple[Column, AttributeSection]], uncountable: Mapping[str, Uncountable]
) -> Iterator[str]:
    """List what an algorithm that gathers rows in clusters does not use, and why a run of it would be refused."""
    algorithm = policy.algorithm
    numbers = [column.name for column, _ in _quasi(attributes) if column.kind.is_numeric and column.name in uncountable]
    if algorithm.draws_numbers and numbers and all(uncountable[name].is_constant for name in numbers):
        yield "A run would be refused: all rows have the same numbers, and synthetic rows would show them."
    if algorithm.recodes is not Recodes.CLUSTERS or not algorithm.suppresses:
        return
    if policy.remainder == "recode":
        yield f"remainder: recode is for generalization by levels, and {algorithm.name} does not use it."
    if policy.suppression and not algorithm.releases_clusters and all(one.decided_by_size for one in models_of(policy)):
        yield f"suppression: every cluster of {algorithm.name} has enough rows, so nothing will be suppressed."


def _suppression_problems(policy: Policy) -> Iterator[str]:
    """Say what keeps clusters from being left out that violate a model."""
    name = policy.algorithm.name
    if policy.stars:
        yield f"suppressed: star shows `*` in place of values, and {name} shows centres; use omit."
    comparing = [model.name for model in models_of(policy) if not model.monotone_under_suppression]
    if policy.suppression and comparing:
        yield (
            f"suppression: {name} leaves no rows out under {comparing[0]}, which compares every cluster with all rows"
            " that are released; leave suppression or the model out."
        )


def gathering_problems(policy: Policy, columns: Sequence[Column], rows: int) -> Iterator[str]:
    """Say what keeps a release from being one row a cluster, with a second table of values."""
    if rows > MOST_GATHERED:
        yield (
            f"algorithm: r-gather compares all pairs of rows, and takes {MOST_GATHERED:,} rows at most; the table holds"
            f" {rows:,}. Use microaggregation."
        )
    if policy.release.file is not None:
        yield "release.file: r-gather releases two tables, and a file holds one; write a table."
    if policy.release.layout != "flat":
        yield "release.layout: r-gather releases one row a cluster, which has no layout: star; leave it out."
    if policy.stars:
        yield "suppressed: star shows rows, and r-gather releases clusters; use omit."
    models = models_of(policy)
    if policy.suppression and not all(model.decided_by_size for model in models):
        yield "suppression: r-gather leaves rows out with k-anonymity alone; leave suppression or the other models out."
    for column in columns:
        role = policy.attributes[column.name].role
        if role is Role.QUASI_IDENTIFIER and column.name.lower() in GATHERED_COLUMNS:
            place = path_text(("attributes", column.name))
            yield f"{place}: r-gather has a column '{column.name}' of its own; rename it in the source."


def condensation_problems(attributes: Sequence[tuple[Column, AttributeSection]]) -> Iterator[str]:
    """Say what keeps synthetic rows from being drawn."""
    numbers = _count_numbers(attributes)
    if not numbers:
        yield (
            "algorithm: condensation draws numbers, and no quasi-identifier is one; use microaggregation or, for"
            " categories alone, a generalization."
        )
    if numbers > MOST_NUMBERS:
        yield f"algorithm: condensation takes at most {MOST_NUMBERS} quasi-identifiers that are numbers, not {numbers}."


def _strata_problems(
    policy: Policy, attributes: Sequence[tuple[Column, AttributeSection]], strata: Strata | None
) -> Iterator[str]:
    """Say what keeps groups from having one value of the target each."""
    target = policy.target
    for column, _ in attributes:
        if column.name == target and column.kind in (Kind.DECIMAL, Kind.FLOAT):
            yield (
                f"algorithm.target: it needs classes, and '{target}' is {column.type}; group its numbers in the source."
            )
    for model in models_of(policy):
        if target is not None and model.attribute == target:
            yield (
                f"algorithm.target: groups have one value of '{target}' each, and {model.name} asks for several;"
                " choose another target, or leave it out."
            )
    if target is None or strata is None:
        return
    if strata.values > MOST_STRATA:
        yield f"algorithm.target: '{target}' has {strata.values:,} values, and may have {MOST_STRATA:,} at most."
    elif strata.small:
        yield f"algorithm.target: {small_strata_problem(target, strata.small, strata.values, strata.k)}"


def small_strata_problem(target: str, small: int, values: int, k: int) -> str:
    """Say that values of the target have too few rows for a group; none is named."""
    return (
        f"{small} of the {values} values of '{target}' have fewer than the {k} rows of a group; join them with others"
        " or leave their rows out of the source, or ask for a smaller k."
    )


def _count_numbers(attributes: Sequence[tuple[Column, AttributeSection]]) -> int:
    """Count the quasi-identifiers whose centres are means."""
    return sum(
        column.kind.is_numeric and one.order is None and one.hierarchy is None for column, one in _quasi(attributes)
    )


def _quasi(attributes: Sequence[tuple[Column, AttributeSection]]) -> list[tuple[Column, AttributeSection]]:
    return [(column, one) for column, one in attributes if one.role is Role.QUASI_IDENTIFIER]


def _foreign_problems(name: str, attribute: AttributeSection) -> Iterator[str]:
    if attribute.order is not None:
        yield f"order is for microaggregation, and {name} does not use it; leave it out."
    if attribute.show.is_centre:
        yield f"show: {attribute.show.value} is the centre of a cluster; use it with microaggregation."


def column_problems(algorithm: AlgorithmParameters, column: Column, attribute: AttributeSection) -> Iterator[str]:
    name = algorithm.name
    if algorithm.releases_clusters:
        yield from _gathered_problems(column, attribute)
        return
    if attribute.hierarchy is not None and not algorithm.takes_hierarchies:
        yield f"{name} takes a hierarchy with method: k-member alone; ask for that, or leave the hierarchy out."
    for key in ("bottom", "top"):
        if getattr(attribute, key) is not None:
            yield f"{name} has no {key}; limit the numbers in the source, with least() or greatest()."
    if attribute.hierarchy is not None:
        yield from _generalized_problems(attribute)
        return
    if column.kind not in _CENTRED and attribute.order is None:
        yield (
            f"{name} has no centre of values of type {column.type}; cast them in the source: to numbers, or, to be"
            " shown by the most frequent one, to texts."
        )
        return
    usual = policy_show(column, attribute)
    if attribute.show not in usual and (attribute.show is not Show.MEAN or column.kind.is_numeric):
        shown = " or ".join(show.value for show in usual if show is not Show.LABEL)
        remedy = "" if attribute.order or column.kind.is_numeric else "; categories have a median if they have an order"
        yield f"{name} shows this column by {shown}, not {attribute.show.value}; leave show out{remedy}."


def _generalized_problems(attribute: AttributeSection) -> Iterator[str]:
    """Say what a column has beside a hierarchy whose labels clusters show."""
    if attribute.order is not None:
        yield "it has a hierarchy and an order; leave one of them out."
    if attribute.show is not Show.LABEL:
        yield "clusters show the label of a group of the hierarchy; leave show out, or the hierarchy."


def _gathered_problems(column: Column, attribute: AttributeSection) -> Iterator[str]:
    """Say what a column has that clusters around rows do not use; their distances are those of numbers."""
    if not column.kind.is_numeric:
        other = ", or use microaggregation" if column.kind in _CENTRED else ""
        yield (
            f"r-gather measures distances of numbers, and the column is {column.type}; cast it to a number in a"
            f" view{other}."
        )
    for key in ("hierarchy", "order", "bottom", "top"):
        if getattr(attribute, key) is not None:
            yield f"r-gather has no {key}; leave it out."
    if attribute.show is not Show.LABEL:
        yield "r-gather shows the number in the centre of a cluster; leave show out."


def policy_show(column: Column, attribute: AttributeSection) -> tuple[Show, ...]:
    """List the forms in which the centres of a column may be shown; `label` stands for the usual one."""
    if attribute.order is not None:
        return (Show.LABEL, Show.MEDIAN, Show.CONVEX_MEDIAN)
    return (Show.LABEL, Show.MEAN if column.kind.is_numeric else Show.MODE)


def value_problems(uncountable: Uncountable | None) -> Iterator[str]:
    if uncountable is None:
        return
    if uncountable.nulls:
        yield (
            f"{rows_hold(uncountable.nulls)} NULL, which has no distance to other values; fill it in or leave these"
            " rows out of the source."
        )
    if uncountable.infinite:
        yield f"{rows_hold(uncountable.infinite)} NaN or an infinity, which have no mean; leave them out of the source."
    if uncountable.huge:
        yield (
            f"{rows_hold(uncountable.huge)} numbers beyond {uncountable.largest:g}, whose products no double holds;"
            " scale them in the source."
        )
    if uncountable.unordered:
        yield f"{rows_hold(uncountable.unordered)} values that order lacks; it must list all of them."
