"""The account of releases about the same people: what a policy must be, so that something can be entered there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.embedded import database_file
from sqlanon.models import largest_k, models_of
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Policy
from sqlanon.policy.algorithm_parameters import Recodes
from sqlanon.support.quantities import quantity
from sqlanon.work.session import catalog_place, database_url

_WITH_LABELS = (Recodes.REGIONS, Recodes.CUTS, Recodes.LEVELS, Recodes.INTERVALS)
_NONE = "or write history: {mode: none}"


def k_of_history(policy: Policy) -> int:
    """Return the least number of persons of a group in all releases together; 1 where nothing asks for more."""
    return policy.history.k or largest_k(models_of(policy))


def history_problems(subject: PlanSubject) -> Iterator[str]:
    """List the reasons why a release can't be entered in the account of its people."""
    policy = subject.policy
    if not policy.history.is_kept:
        return
    yield from account_problems(policy)
    if policy.person is not None and policy.person in [one.column for one in subject.repetition.columns]:
        yield (
            f"history: '{policy.person}' repeats, and releases are held against each other for tables of one row a"
            f" person; release such a table or view, {_NONE}."
        )
    if policy.algorithm.recodes not in _WITH_LABELS:
        yield f"history: {policy.algorithm.name} makes no classes with labels; choose another algorithm, {_NONE}."
    if policy.exempts_stars:
        yield f"history: rows of stars must satisfy the models; write suppressed: star, {_NONE}."
    if policy.history.adds and policy.release.layout != "flat":
        yield f"history: batches are added to one table; leave release.layout out, {_NONE}."
    if policy.history.adds and policy.digest == "run":
        yield f"history: a run digests its own batch, and no more of the release; leave digest out, {_NONE}."
    k, rows = policy.history.k or 0, subject.rows
    if policy.history.mode != "watch" and not subject.is_part and 0 < rows < k:
        yield f"history: k is {k}, but the table holds {quantity(rows, 'row')}."
    yield from _departure_problems(policy)
    yield from _place_problems(policy)


def _departure_problems(policy: Policy) -> Iterator[str]:
    """List the models whose verdict rows that leave would change: of a whole release, or of a class beside all rows."""
    history = policy.history
    if not history.lets_go:
        return
    unjudged = [model.name for model in models_of(policy) if model.scope == "table" or model.covers_population]
    if unjudged:
        yield f"history: rows that leave change what {', '.join(unjudged)} judges; write departures: keep."
    compared = [model.name for model in models_of(policy) if not model.monotone_under_suppression]
    if history.departures == "retract" and not unjudged and compared:
        yield (
            f"history: {', '.join(compared)} compares classes with all rows, so that nobody can say whether those who"
            " leave may; write departures: erase, or keep."
        )


def account_problems(policy: Policy) -> Iterator[str]:
    """List the reasons why nothing about a policy's persons can be entered in an account, whatever it is."""
    person = policy.person
    if person is None:
        yield f"history: it is kept of persons; name the column that tells them apart as `subject`, {_NONE}."
    attribute = None if person is None else policy.attributes.get(person)
    if attribute is not None and attribute.show.is_mask:
        yield (
            f"history: the release shows '{person}' as a {attribute.show.value}, and persons are known by the source's"
            f" own values; leave show out, {_NONE}."
        )
    if attribute is not None and attribute.nulls == "each":
        yield f"history: rows without '{person}' are of nobody who could be known again; leave them out in a view."
    if k_of_history(policy) < 2:
        yield "history: no model has a k of 2 or more; give history.k, the least number of persons of a group."
    database = database_url(policy)
    if database is not None and _is_another(catalog_place(policy).url, database):
        yield f"history: the catalog must be in the source's database; leave catalog.url out, {_NONE}."


def _place_problems(policy: Policy) -> Iterator[str]:
    """A release and its account change together, in one transaction, or not at all."""
    database = database_url(policy)
    if policy.release.file is not None:
        yield f"history: a file can't be published together with its account; release a table, {_NONE}."
    elif policy.source.file is not None:
        yield f"history: a file is in no database with its release; load it into a table and name that, {_NONE}."
    elif policy.release.url not in (None, database):
        yield f"history: source and release must be in one database, with one URL; leave release.url out, {_NONE}."


def _is_another(one: str, other: str) -> bool:
    """Tell whether two URLs can't be of one database; of two on servers the run's sessions tell."""
    return find_dialect(one) is not find_dialect(other) or _file_of(one) != _file_of(other)


def _file_of(url: str) -> Path | None:
    file = database_file(url)
    return None if file is None else file.resolve()
