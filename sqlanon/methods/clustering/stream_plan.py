"""Problems of a policy by which a stream of rows is condensed, and of a table of new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlanon.catalog import JOB_NAME, JOB_NAME_PROBLEM
from sqlanon.engines.columns import Column
from sqlanon.models import models_of
from sqlanon.plan.cluster_checks import column_problems, condensation_problems
from sqlanon.plan.pseudonyms import pseudonymous
from sqlanon.policy import Policy, Role
from sqlanon.policy.document import path_text
from sqlanon.sql import MAX_IDENTIFIER_BYTES

_LONGEST = MAX_IDENTIFIER_BYTES - len("mean_")  # bytes of a number's name


def stream_problems(policy: Policy, job: str) -> Iterator[str]:
    """Say what keeps a policy from condensing a stream, and which of its keys a stream would not follow."""
    algorithm, models = policy.algorithm, models_of(policy)
    if not JOB_NAME.fullmatch(job):
        yield JOB_NAME_PROBLEM
    if not algorithm.draws_numbers:
        yield f"algorithm: a stream is condensed by condensation, not by {algorithm.name}."
    if policy.target is not None:
        yield "algorithm.target: a stream has no target; condense the rows of each value as a job of its own."
    if policy.release.table is None:
        yield "release: a stream is released as a table; name one."
    if policy.release.layout != "flat":
        yield "release.layout: a stream is released as one table, which has no layout: star; leave it out."
    if policy.source.url is None:
        yield "source.url: the rows of a stream come from tables of a database; name it."
    if policy.suppression or policy.stars:
        yield "suppression: all rows of a stream join a group, and none is suppressed; leave it out."
    if not all(model.decided_by_size and model.known_rows is None for model in models):
        yield "privacy: of a stream only the sizes of groups are known; ask for k-anonymity alone."
    elif algorithm.draws_numbers and algorithm.rows_of(max(model.least_rows for model in models)) < 2:
        yield "privacy: the statistics of a group of one row are this row; ask for a k of 2 or more."
    yield from _attribute_problems(policy)


def _attribute_problems(policy: Policy) -> Iterator[str]:
    yield from _history_problems(policy)
    if policy.person is not None:
        yield f"subject: a stream counts rows, and not the persons of '{policy.person}'; write subject: none."
    for name in pseudonymous(policy):
        place, shown = path_text(("attributes", name)), policy.attributes[name].show.value
        yield f"{place}: a stream releases no row of anybody, which a {shown} could be of; leave show out."
    if not any(one.role is Role.QUASI_IDENTIFIER for one in policy.attributes.values()):
        yield "attributes: no attribute has role quasi-identifier; a stream keeps the numbers of these."
    for name, one in policy.attributes.items():
        place = path_text(("attributes", name))
        if one.role in (Role.SENSITIVE, Role.INSENSITIVE) or one.order is not None:
            yield (
                f"{place}: a stream keeps statistics of numbers alone; make it a quasi-identifier if it is a number,"
                " or leave it out (role: omit)."
            )
        elif one.role is Role.QUASI_IDENTIFIER and len(name.encode()) > _LONGEST:
            yield f"{place}: names of a stream's numbers have at most {_LONGEST} bytes; rename it in a view."


def _history_problems(policy: Policy) -> Iterator[str]:
    """Say why releases of a stream can't be entered in an account of their people."""
    if not policy.history.is_kept:
        return
    if policy.history.mode != "watch":
        yield (
            "history: nobody knows who is in the groups of a stream, so that no release of it can be held against"
            " others; write mode: watch, which enters it as such a release, or leave history out."
        )
    if policy.history.k is not None:
        yield "history.k: the persons of a stream are not counted; leave it out."
    if policy.people is None:
        yield "people: rows of a stream may come from several tables; name the people whose account is kept."


def table_problems(policy: Policy, table: str, columns: Sequence[Column]) -> Iterator[str]:
    """Say which columns of a table of new rows the groups of a stream can't take."""
    by_name = {column.name: column for column in columns}
    for column in columns:
        if column.name not in policy.attributes:
            yield f"{column.name}: {table} has this column, and the policy gives it no role."
    numbers = [(name, one) for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
    for name, one in numbers:
        place = path_text(("attributes", name))
        if name not in by_name:
            yield f"{table} has no column '{name}'."
        elif not by_name[name].kind.is_numeric:
            yield f"{place}: a stream keeps statistics of numbers, and it is {by_name[name].type}."
        else:
            yield from (f"{place}: {problem}" for problem in column_problems(policy.algorithm, by_name[name], one))
    yield from condensation_problems([(by_name[name], one) for name, one in numbers if name in by_name])
