"""Entering the release of a job's procedure in the account of its people, by the statements of `runs.accounts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import ACCOUNT_WAIT, KEY_BITS, LineKind, People, account_lock_name, busy, forgotten
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.jobs.patterns import pattern
from sqlanon.jobs.recoded import Recoded, columns_of
from sqlanon.jobs.staging import BOX_LABELS, PLACED
from sqlanon.models import PrivacyModel
from sqlanon.plan.checks import released_names
from sqlanon.plan.history import k_of_history
from sqlanon.plan.people_of_source import find_people
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.releases.rules.row_expressions import UnmatchedValue, column_of
from sqlanon.runs.accounts.history_problem import (
    REFUSED,
    REPAIR_HINT,
    first_about,
    leaves_few,
    shows_groups,
    together_with,
)
from sqlanon.runs.linking import SAME_RECODING
from sqlanon.sql import Identifier, Relation, Statement, Text, free_name, macro
from sqlanon.values.expressions import shown, text_of_person
from sqlanon.verification.table_check import CountedRows
from sqlanon.verification.verify import verifying_statements
from sqlanon.work.held_account import COUNTED_LINES

# Temporary tables; but for the last they are dropped where the release is checked, and that one when it is entered.
_MEMBERS = Relation("sqlanon_members", "pg_temp")
_JOINED = Relation("sqlanon_joined", "pg_temp")
_GROUPS = Relation("sqlanon_groups", "pg_temp")
_GROUP_MEMBERS = Relation("sqlanon_group_members", "pg_temp")
_SIGNATURES = Relation("sqlanon_signatures", "pg_temp")


def person_column(engine: Engine, plan: Plan) -> dict[str, Any] | None:
    """Name the column of a recoding that says whose row it is, as the account of its people knows persons.

    None where no account is kept.
    """
    policy = plan.policy
    if not policy.history.is_kept or plan.person is None:
        return None
    taken = [name for column, one in policy.attributes.items() for name in (column, *released_names(column, one))]
    value = text_of_person(engine.render, column_of(plan.person.name), plan.person.column)
    return {"name": free_name("sqlanon_person", taken), "value": value}


def nobodys_rows(policy: Policy) -> Iterator[UnmatchedValue]:
    """Find rows of nobody who could be known again, where the releases of a policy are entered in an account."""
    if policy.history.is_kept and policy.person is not None:
        yield UnmatchedValue(
            macro("recoding.is_null", column_of(policy.person)),
            f"subject: '{policy.person}' is NULL in some rows, so nobody knows whose they are; leave them out in a"
            " view.",
            refused=True,
        )


@dataclass(frozen=True)
class EnteredRelease:
    """The release of a job, as its procedure holds it against all that was entered about the same people.

    people: as their account knows them. models: of the policy. most: the most rows that the procedure is made for.
    """

    engine: Engine
    catalog: Catalog
    policy: Policy
    people: People
    recoded: Recoded
    models: Sequence[PrivacyModel]
    most: int

    def values(self) -> dict[str, Any]:
        """Return the values that the templates of a procedure interpolate."""
        tables, verifying = self.catalog.account_tables, self._verifying
        return {
            **tables,
            "people": Text(self.people.name),
            "identities": [Text(one) for one in self.people.identities],
            "subject": None if self.people.subject is None else Text(self.people.subject),
            "k": k_of_history(self.policy),
            "kind": Text(LineKind.RELEASE),
            "refuses": self.policy.history.mode != "watch",
            "lock_name": Markup(Text(account_lock_name(self.people.name, self.catalog.location, ""))),
            "patience": Text(f"{ACCOUNT_WAIT:.0f}s"),
            "digits": KEY_BITS // 4,
            "members": _MEMBERS,
            "joined": _JOINED,
            "groups": _GROUPS,
            "group_members": _GROUP_MEMBERS if verifying else None,
            "signatures": _SIGNATURES,
            "signatures_name": Text(str(_SIGNATURES)),
            "number": self._number,
            "verifying": [statement for statement, _ in verifying],
            "models": [
                {"statement": self._number + number, "part": part, "name": Text(name)}
                for number, (_, names) in enumerate(verifying)
                for part, name in enumerate(names, start=1)
            ],
            "statements": self._statements(tables),
            "same_recoding": self.policy.republish == SAME_RECODING,
            "recoded_alike": Text(SAME_RECODING),
            **self._messages,
        }

    @property
    def _messages(self) -> dict[str, Any]:
        k, person, people = k_of_history(self.policy), self.policy.person, self.people.name
        return {
            "busy": Text(busy(people)),
            "forgotten": Text(forgotten(people)),
            "several": Text(
                f"history: '{person}' repeats, and releases are held against each other for tables of one row a person;"
                " nothing was published."
            ),
            "first": Text(first_about(people)),
            "together": pattern(lambda earlier: together_with(earlier, people)),
            "few": pattern(lambda persons, came, left: leaves_few(persons, k, came, left), 3),
            "violates": pattern(shows_groups),
            "refused": Text(REFUSED + REPAIR_HINT),
            "nouns": {
                "release": (Text(" earlier release"), Text(" earlier releases")),
                "answer": (Text(" answer"), Text(" answers")),
                "person": (Text(" person"), Text(" persons")),
            },
        }

    # --- statements of the account

    def _statements(self, tables: Mapping[str, Relation]) -> dict[str, Statement]:
        account = {"account": macro("jobs.account"), "accounts": tables["accounts"]}
        persons = {"account": macro("jobs.account"), "persons": tables["account_persons"]}
        lines, k = tables["account_releases"], k_of_history(self.policy)
        return {
            "write_members": self._write_members(account),
            "count_members": self._rendered("runs/accounts/count_members", members=_MEMBERS),
            "count_lines": self._rendered("work/account/count_lines", **account, **COUNTED_LINES, lines=lines),
            "join": self._rendered("work/account/join_members", joined=_JOINED, members=_MEMBERS, **persons),
            "group": self._rendered("work/account/create_groups", groups=_GROUPS, joined=_JOINED, first=0),
            "sign": self._rendered(
                "work/account/create_signatures",
                signatures=_SIGNATURES,
                groups=_GROUPS,
                joined=_JOINED,
                is_release=True,
            ),
            "measure": self._rendered("work/account/measure_groups", groups=_GROUPS, k=k),
            "list_group_members": self._rendered(
                "runs/accounts/create_group_members",
                judged=_GROUP_MEMBERS,
                group=self._group,
                members=_MEMBERS,
                signatures=_SIGNATURES,
                values=[{"name": name, "column": cell} for name, cell in self._sensitive],
            ),
            "lock": self._rendered("work/account/lock_account", **account),
            "forget": self._rendered("work/account/forget_signatures", **persons),
            "keep": self._rendered("work/account/keep_signatures", signatures=_SIGNATURES, **persons),
        }

    def _write_members(self, account: dict[str, Any]) -> Statement:
        """Write down the persons of the staged rows; their classes are told by what these show."""
        person, regions = self.recoded.person, self.recoded.regions
        assert person is not None
        pairs = zip(regions, columns_of("x", regions), strict=True)
        listed = self._rendered(
            "jobs/list_persons",
            person=Identifier(person.name),
            values=[{"name": name, "column": cell} for name, cell in self._sensitive],
            class_column=self.recoded.class_column,
            placed=PLACED,
            box_labels=BOX_LABELS,
            keys=[key for column, name in pairs for key in shown(self.engine, column, name)],
        )
        return self._rendered(
            "runs/accounts/create_members",
            members=_MEMBERS,
            judged=macro("relations.named_lines", listed),
            **account,
            person=Markup(Identifier(person.name)),
            number=self.recoded.class_column,
            keys=[],
            line=None,
            values=[{"name": cell, "column": cell} for _, cell in self._sensitive],
        )

    @property
    def _number(self) -> int:
        """The number of the first statement that checks groups, after those that verify the release."""
        return len(self.models) + 1

    @property
    def _sensitive(self) -> list[tuple[Identifier, Identifier]]:
        """The sensitive columns, and their names where no name of a column may be taken for a variable."""
        return [(Identifier(name), Identifier(f"s{place}")) for place, name in enumerate(self.recoded.sensitive)]

    @property
    def _group(self) -> Identifier:
        return free_name("signature", self.recoded.sensitive)

    @property
    def _verifying(self) -> list[tuple[Statement, list[str]]]:
        """The statements that check the groups of persons by the models of sensitive values, with the models' names."""
        models = [model for model in self.models if model.attribute is not None]
        if not models:
            return []
        columns = {column.name: column for column in self.recoded.columns}
        group = Column(self._group.name, "bigint", Kind.INTEGER)
        listed = [group, *(columns[name] for name in self.recoded.sensitive)]
        table = (lambda _: CountedRows(_GROUP_MEMBERS)), listed
        rows = self.most, macro("jobs.staged_rows")
        verifying = verifying_statements(self.engine, table, [group.name], models, rows)
        return [(one.statement, [models[place].name for place in one.places]) for one in verifying]

    def _rendered(self, template: str, **values: Any) -> Statement:
        return self.engine.render(template, **values)


def enter_release(
    engine: Engine, catalog: Catalog, plan: Plan, recoded: Recoded, models: Sequence[PrivacyModel], most: int
) -> EnteredRelease | None:
    """Enter the releases of a job by its procedure; None where no account is kept.

    most: the most rows that the procedure is made for.
    """
    policy = plan.policy
    if not policy.history.is_kept:
        return None
    people = find_people(policy, engine, catalog, plan.source)
    return EnteredRelease(engine, catalog, policy, people, recoded, models, most)
