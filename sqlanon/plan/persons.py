"""Persons in place of rows: what a policy's subject must be, so that models count persons."""

from __future__ import annotations

from collections.abc import Iterator

from sqlanon.engines.columns import Kind
from sqlanon.errors import PolicyError
from sqlanon.models import PrivacyModel, models_of
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import AlgorithmParameters, Policy, Role
from sqlanon.policy.algorithms import own_algorithms
from sqlanon.support.suggest import did_you_mean


def refuse_persons(policy: Policy, doer: str) -> None:
    """Raise PolicyError where a policy counts persons, which `doer`, the subject of a sentence, doesn't."""
    if policy.person is not None:
        raise PolicyError(f"subject: {doer} counts rows, and not the persons of '{policy.person}'.")


def require_models_by_rows(policy: Policy, doer: str) -> None:
    """Raise PolicyError where `doer`, which counts rows and sees whose they are, can't judge by a model of persons."""
    person = policy.person
    unknown = [] if person is None else [model.name for model in models_of(policy) if model.by_rows(person) is None]
    if unknown:
        raise PolicyError(
            f"subject: {doer} counts rows, by which {', '.join(unknown)} can't be judged of the persons of '{person}',"
            " who may have several."
        )


def refuse_joined_rows(policy: Policy, doer: str) -> None:
    """Raise PolicyError where classes of a person are judged together, and `doer` judges classes one by one."""
    if names := [model.name for model in models_of(policy) if model.known_rows is not None]:
        raise PolicyError(
            f"privacy: {doer} judges classes one by one, and {', '.join(names)} all classes of a person together; run"
            " the policy itself on the new rows (sqlanon run)."
        )


def joined_rows_problems(model: PrivacyModel, policy: Policy) -> Iterator[str]:
    """Say why a model that judges the classes of a person together can't be asked of a policy."""
    if model.known_rows is None:
        return
    if policy.person is None:
        yield (
            "it judges what several rows of a person tell, and the policy says of no column that it tells persons"
            " apart: name that column with `subject`, at the top of the policy."
        )
    if not policy.algorithm.joins_rows:
        able = [name for name, one in own_algorithms().items() if one.joins_rows]
        yield (
            f"it judges all classes of a person together, and {policy.algorithm.name} decides class by class; choose"
            f" {', '.join(able[:-1])} or {able[-1]}."
        )
    if policy.remainder == "recode":
        yield (
            "it judges all classes of a person together, and remainder: recode makes classes pass by pass; leave"
            " remainder out."
        )
    if policy.judges_stars:
        yield (
            "it judges all classes of a person together, and suppressed: star shows suppressed rows as one more class;"
            " write suppressed: omit."
        )


def person_problems(subject: PlanSubject) -> Iterator[str]:
    """List the reasons why persons can't be counted."""
    name, policy = subject.policy.person, subject.policy
    for other, attribute in policy.attributes.items():
        if attribute.nulls == "each" and other != name:
            yield f"attributes.{other}: nulls: each is for the subject of the policy, whose rows are of persons."
    if name is None:
        return
    if name not in policy.attributes:
        yield f"subject: '{name}' is not among the attributes; {did_you_mean(name, policy.attributes)}"
        return
    attribute, algorithm = policy.attributes[name], policy.algorithm
    if attribute.role is not Role.IDENTIFIER:
        yield f"subject: '{name}' tells persons apart: its role must be identifier, not {attribute.role.value}."
    elif not subject.dialect.counts_persons:
        yield f"subject: {subject.dialect.counts_persons.lacking}"
    elif attribute.show.is_mask and not attribute.show.tells_apart:
        yield (
            f"subject: '{name}' tells persons apart, and its show: {attribute.show.value} does not; use show: surrogate"
            " or pseudonym, or leave show out."
        )
    elif not attribute.show.is_mask:
        yield from _hidden_problems(subject, name)
    if not algorithm.releases_rows:
        yield f"subject: {algorithm.name} releases no row of anybody, whom models could count; write subject: none."
    if algorithm.has_wildcards:
        yield (
            f"subject: {algorithm.name} counts the rows that fit a row, and not their persons; choose another"
            " algorithm, or write subject: none."
        )
    for model in models_of(policy):
        yield from _model_problems(model, name, algorithm)
    nulls = subject.nulls.get(name, 0)
    if nulls and attribute.nulls != "each":
        yield (
            f"subject: '{name}' is NULL in {nulls:,} of {subject.rows:,} rows, so nobody knows whose they are. With"
            " nulls: each, given of the attribute, each of them is of a person of their own."
        )


def _hidden_problems(subject: PlanSubject, name: str) -> Iterator[str]:
    """List the reasons why persons can't be counted by the values of an identifier that the release doesn't show."""
    column = subject.column(name)
    if column is not None and column.kind is Kind.OTHER:
        yield (
            f"subject: values of '{name}', of type {column.type}, can't be told apart in the same way everywhere;"
            f" {subject.recast}."
        )


def person_notes(policy: Policy) -> Iterator[str]:
    """Say that nobody can count the persons of a release that doesn't show them."""
    if policy.hides_person:
        yield (
            f"subject: the release shows nothing of '{policy.person}', so that its persons are counted once, by the"
            " run, before it is published; `sqlanon verify` can't count them later. A surrogate (show: surrogate) would"
            " tell which rows are of one person, and so let it."
        )


def _model_problems(model: PrivacyModel, person: str, algorithm: AlgorithmParameters) -> Iterator[str]:
    """Say that a search can't judge by a model of persons."""
    if model.scope == "table":
        yield f"subject: {model.name} judges a release by its rows, and not by persons; write subject: none."
    elif algorithm.counts_persons:
        if model.attribute is not None and not model.judges_shares:
            yield (
                f"subject: {model.name} counts rows with a sensitive value, and not persons, who may have several; ask"
                " for k-anonymity and another model, or write subject: none."
            )
    elif model.by_rows(person) is None:
        yield (
            f"subject: {algorithm.name} counts rows, by which {model.name} can't be judged of persons, who may have"
            " several; choose mondrian, another model, or write subject: none."
        )


def person_warnings(subject: PlanSubject) -> Iterator[str]:
    """Say that a subject has one row of each person, so that persons are rows."""
    name = None if subject.policy.history.is_kept else subject.policy.person  # an account knows persons by it
    if name is not None and name not in [one.column for one in subject.repetition.columns]:
        yield f"subject: no value of '{name}' is in two rows: persons are rows, as with subject: none."
