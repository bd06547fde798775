"""Problems of a policy whose models look at a population table."""

from __future__ import annotations

from collections.abc import Iterator

from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.models import PrivacyModel, models_of
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import AttributeSection, Policy, Role, Show
from sqlanon.policy.document import path_text


def population_problems(name: str, subject: PlanSubject) -> Iterator[str]:
    """Say why a model can't hold classes against the population table `name`."""
    policy = subject.policy
    if not policy.algorithm.judges_tables:
        yield (
            f"it holds classes against a population, which {policy.algorithm.name} does not; choose incognito,"
            " samarati, bottom-up, optimal or datafly."
        )
    if not subject.dialect.counts_population:
        yield subject.dialect.counts_population.lacking
    elif policy.source.table is None:
        yield "the population is a table beside the source's; name source.table, not a file."
    elif name != policy.population:
        yield f"models of one policy look at one population, and another one names {policy.population}."
    elif subject.population is None:
        yield f"there is no table {name} in the source's database."
    elif subject.lacks_people and subject.rows:
        yield f"the population {name} has no rows, so that nobody could be in the release."
    if policy.release.file is not None or policy.release.url not in (None, policy.source.url):
        yield "the release is verified beside the population: release it as a table of the source's database."
    if policy.person is not None:
        yield f"it counts rows of the population, and not the persons of '{policy.person}'; write subject: none."
    if policy.stars or policy.remainder == "recode":
        yield "it judges rows at one level of each column: write suppressed: omit, and leave remainder out."
    for column, attribute in subject.attributes:
        if attribute.role is Role.QUASI_IDENTIFIER:
            place = path_text(("attributes", column.name))
            yield from (f"{place} {problem}" for problem in _column_problems(column.name, attribute, subject))


def covering_problems(model: PrivacyModel, policy: Policy) -> Iterator[str]:
    """Say why all rows of a population can't be held to fit a class."""
    if model.covers_population and policy.suppression:
        yield (
            "its minimum is for all rows of the population, and who is left out is certainly not in the release: write"
            " suppression: 0, or leave minimum out."
        )


def refuse_covering(policy: Policy, doer: str) -> None:
    """Raise PolicyError where all rows of a population must fit a class, which `doer`, a clause, can't judge."""
    if covering := [model.name for model in models_of(policy) if model.covers_population]:
        raise PolicyError(f"privacy: with a minimum of {covering[0]} all rows of the population fit a class: {doer}.")


def _are_comparable(one: Column, other: Column) -> bool:
    """Tell whether equal values of both columns have one label."""
    return one.kind is other.kind and (one.kind in (Kind.INTEGER, Kind.TEXT) or one.type == other.type)


def _column_problems(name: str, attribute: AttributeSection, subject: PlanSubject) -> Iterator[str]:
    if attribute.show is not Show.LABEL:
        yield "is not shown by a label, by which rows of a population are counted; leave show out."
    if attribute.top is not None or attribute.bottom is not None:
        yield "has a limit (top or bottom), which is not applied to the population; use a hierarchy alone."
    if attribute.hides_nulls:
        yield "hides NULL (nulls: unknown), which a label of the population does not; leave nulls out."
    if attribute.hierarchy is not None and attribute.hierarchy.mask is not None and attribute.hierarchy.length is None:
        yield "is masked up to the longest value, which one of the tables may lack; say its characters (length: 5)."
    if subject.population is None:
        return
    own = subject.column(name)
    other = next((column for column in subject.population.columns if column.name == name), None)
    if other is None:
        yield f"is no column of {subject.policy.population}; show it there by a view."
    elif own is not None and not _are_comparable(own, other):
        # An ENUM comes from another database as text, and a decimal with its digits: no view there is like the source.
        changes = own.kind is Kind.ENUM or (own.kind is Kind.DECIMAL and "(" not in own.type)
        where = "both in views" if changes and subject.policy.population_elsewhere is not None else "it there in a view"
        yield f"is {own.type} in the source, and {other.type} in {subject.policy.population}; cast {where}."
