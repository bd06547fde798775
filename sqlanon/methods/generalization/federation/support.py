"""The support of an itemset whose items are columns of different sites: how many of the same persons have all.

Each site marks its rows, one a person and in the order of their identifiers, by 1 where its own conditions hold, and
shares the marks; the sum of their products is opened. Sites that have no conditions, or no table, mark all: of two
owners the third only holds shares (the three-party form of the scalar product).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, PolicyError
from sqlanon.inquiries.questions.axes import TypedCondition, spans_of
from sqlanon.inquiries.questions.question import Aggregate, parse_question
from sqlanon.inquiries.questions.question_audit import AskedTable
from sqlanon.methods.generalization.federation.agreement import describe_plan, require_same_parts
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.shares import PRIME, Numbers, Sharing
from sqlanon.plan.opening import open_source_table
from sqlanon.policy import Policy, Role
from sqlanon.sql import Identifier, Relation
from sqlanon.support.quantities import quantity
from sqlanon.values.expressions import text_of

_DOING = "while the support was counted"
_FEWEST_CONDITIONS = 2  # sites that have some
_ASKED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.INSENSITIVE)


@dataclass(frozen=True)
class Marks:
    """A site's persons in the order of their identifiers: a digest of these, and 1 for each who is marked.

    are_chosen: whether conditions say who is marked; otherwise all are.
    """

    persons: str
    numbers: Numbers
    are_chosen: bool = True


def count_support(
    plan: FederationPlan,
    policy: Policy | None,
    site: str,
    key: Path,
    *,
    person: str | None = None,
    where: str = "",
    options: EngineOptions | None = None,
) -> int:
    """Count the persons of whom the conditions of all sites hold.

    person: the column that identifies a row's person, the same at all sites; where: this site's conditions, as
        questions have them; a site without a policy has neither.

    Raises PolicyError where a condition can't be read or is on no column of the policy, or the sites' persons are not
    the same; AccessError where a site can't be reached or leaves.
    """
    if policy is None and (person is not None or where):
        raise PolicyError("--id and --where are of a table: name the policy that has it.")
    marks = None if policy is None else _read(policy, person, where, options)
    if marks is not None and len(marks.numbers) > plan.most_cells:
        raise PolicyError(_too_many(len(marks.numbers), plan))
    with Party(plan, site, key) as party:
        return multiply_marks(party, marks)


def multiply_marks(party: Party, marks: Marks | None) -> int:
    """Open the number of persons whom all sites mark; a site without marks marks all of them."""
    require_same_parts(party, describe_plan(party))
    persons = _agree_on_persons(party, marks)
    own = np.ones(persons, np.uint64) if marks is None else marks.numbers
    sharing = Sharing(party)
    first, *others = sharing.share_each(own, _DOING)
    for shares in others:
        first = sharing.multiply(first, shares, _DOING)
    total = np.array([first.sum(dtype=np.uint64) % np.uint64(PRIME)], np.uint64)
    return int(sharing.open(total, _DOING)[0])


def _agree_on_persons(party: Party, marks: Marks | None) -> int:
    """Count the persons, who must be the same at all sites that have a table."""
    own = None if marks is None else [marks.persons, len(marks.numbers), marks.are_chosen]
    received = party.tell(own, "while persons were compared")
    by_site = zip(party.plan.names, received, strict=True)
    having = {name: _read_persons(name, one) for name, one in by_site if one is not None}
    if sum(one[2] for one in having.values()) < _FEWEST_CONDITIONS:
        raise PolicyError(
            "--where: the support is of conditions of two sites at least; that of one site alone is a count of its own."
        )
    (first, one), *others = having.items()
    if one[1] > party.plan.most_cells:
        raise PolicyError(_too_many(one[1], party.plan))
    differing = [f"'{name}'" for name, other in others if other[:2] != one[:2]]
    if differing:
        raise PolicyError(
            f"The identifiers at {', '.join(differing)} are not those at '{first}': each site needs one row for each of"
            " the same persons, whose identifiers are written alike."
        )
    return one[1]


def _too_many(persons: int, plan: FederationPlan) -> str:
    return (
        f"There are {quantity(persons, 'person')}, of whom each site sends shares: more than the {plan.most_cells:,} of"
        " most_cells in the plan; raise it at all sites."
    )


def _read_persons(site: str, message: object) -> tuple[str, int, bool]:
    """The digest of a site's persons, how many they are, and whether conditions choose some, as it told them."""
    match message:
        case [str(persons), int(count), bool(are_chosen)] if count >= 0:
            return persons, count, are_chosen
    raise AccessError(f"What '{site}' told of its persons can't be read: it is out of step, or of another version.")


def _read(policy: Policy, person: str | None, where: str, options: EngineOptions | None) -> Marks:
    if policy.source.table is None:
        raise PolicyError("source.file: the support is counted in tables; load the file into one.")
    if person is None:
        raise PolicyError("--id: name the column that identifies persons, by which rows of the sites belong together.")
    with connect(policy.source.url or "", options) as engine, open_source_table(engine, policy) as source:
        return read_marks(engine, source, policy, person, where)


def read_marks(engine: Engine, source: Relation, policy: Policy, person: str, where: str) -> Marks:
    """Mark the persons of a table of whom conditions hold; raises PolicyError where a person has no row or several."""
    columns = {column.name: column for column in engine.columns(source)}
    if person not in columns:
        raise PolicyError(f"--id: the table has no column '{person}'.")
    table = AskedTable(engine, source, None, 1)
    spans = table.span_values(_conditions(columns, policy, where))
    column = columns[person]
    text = text_of(engine.render, Markup(Identifier(person)), column.kind, column.type)
    rows = engine.query("methods/generalization/federation/mark_rows", source=source, person=text, spans=spans)
    if any(one is None for one, _ in rows):
        raise PolicyError(f"--id: column '{person}' is NULL in some row, and each person needs an identifier.")
    marked = sorted((str(one).encode(), int(mark)) for one, mark in rows)
    if any(one == other for (one, _), (other, _) in itertools.pairwise(marked)):
        raise PolicyError(f"--id: column '{person}' has some value in several rows; name one that is a row's own.")
    digest = hashlib.sha256(b"".join(len(one).to_bytes(4, "big") + one for one, _ in marked))
    return Marks(digest.hexdigest(), np.array([mark for _, mark in marked], np.uint64), bool(where))


def _conditions(columns: Mapping[str, Column], policy: Policy, where: str) -> Sequence[TypedCondition]:
    if not where:
        return ()
    question = parse_question(f"{Aggregate.COUNT}(*) where {where}")
    allowed = [name for name, one in policy.attributes.items() if one.role in _ASKED]
    for condition in question.conditions:
        if condition.column not in allowed:
            raise PolicyError(f"--where: '{condition.column}' is no quasi-identifier, sensitive or insensitive column.")
    return spans_of(question, list(columns.values()), allowed)
