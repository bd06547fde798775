"""Helpers for tests of rules: applying rules, opening them, and a table whose attributes have hierarchies."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import ProtectionError
from sqlanon.policy import Policy
from sqlanon.releases.rules.box_labels import Rule, list_rules
from sqlanon.releases.rules.store_rules import StoredRules, read_rules
from sqlanon.results.run_result import RunResult
from sqlanon.runs import applying
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from sqlanon.work.journal import Observer
from tests.methods.partitioning.mondrian_oracle import Attribute
from tests.run_support import OPTIONS, Database, Row, anonymize


def apply(
    database: Database,
    run: str,
    to: str,
    out: str,
    how: applying.OnViolation = "suppress",
    known: Policy | None = None,
    observer: Observer | None = None,
    **more: Any,
) -> RunResult:
    """Apply the rules of a run."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        found = catalog.run(run)
    wanted = Application(run, to, out, how, **more)
    return apply_rules(wanted, found, (database.url, "sqlanon"), known, options=OPTIONS, observer=observer)


@contextlib.contextmanager
def opened(database: Database, run: str) -> Iterator[tuple[Any, StoredRules]]:
    """An engine where the rules of a run are, and the rules."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        yield engine, read_rules(catalog, run)


def listed(database: Database, run: str) -> list[Rule]:
    with opened(database, run) as (engine, stored):
        return list_rules(engine, stored, 100_000, 0)


class Recoded(NamedTuple):
    """Rules, what they were made with, and what they make of its source again and of new rows, if that may be."""

    rules: list[Rule]
    released: list[Row]
    again: list[Row]
    newer: list[Row] | None


def recoded(
    database: Database,
    attributes: Sequence[Attribute],
    source: list[Row],
    new: list[Row],
    others: Mapping[str, str],
    **policy: Any,
) -> Recoded:
    """Release a source of `q0`, … and of other columns, `s` sensitive; apply its rules to it and to new rows."""
    columns = {f"q{i}": a.type for i, a in enumerate(attributes)} | others
    roles: dict[str, Any] = {f"q{i}": a.policy for i, a in enumerate(attributes)}
    roles |= {name: "sensitive" if name == "s" else "insensitive" for name in others}
    table, newer = database.create(columns, source), database.create(columns, new)
    run = anonymize(database.policy(table, roles, **policy)).run
    apply(database, run, table, f"{table}_again", "error")
    try:
        apply(database, run, newer, f"{newer}_r")
        found = database.sql(f"SELECT * FROM {newer}_r")
    except ProtectionError:
        found = None
    released, again = (database.sql(f"SELECT * FROM {t}") for t in (f"{table}_r", f"{table}_again"))
    return Recoded(listed(database, run), released, again, found)


def classes(rows: Sequence[Row], width: int) -> list[list[int]]:
    """The ids of the rows of each class: the last column, of rows alike in the first `width`."""
    members: dict[Row, list[int]] = defaultdict(list)
    for row in rows:
        members[row[:width]].append(row[-1])
    return sorted(sorted(ids) for ids in members.values())


CODED = {"c": "VARCHAR(3)", "z": "VARCHAR(3)", "s": "VARCHAR(1)"}
CODED_ROLES = {
    "c": {"role": "quasi-identifier", "hierarchy": {"mapping": {"x": "1", "y": "1", "v": "2", "w": "2"}}},
    "z": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "s": "sensitive",
}
GENERALIZATIONS: dict[str, dict[str, Any]] = {
    "top-down": {"algorithm": {"name": "top-down"}},
    "optimal": {"algorithm": {"name": "optimal"}, "suppression": 0.1},
    "starred": {"algorithm": {"name": "incognito"}, "suppression": 0.1, "suppressed": "star"},
    "passes": {"algorithm": {"name": "optimal"}, "suppression": 0.4, "remainder": "recode"},
    "attributes": {"algorithm": {"name": "samarati", "recoding": "attribute-suppression"}, "suppression": 0.3},
}


def coded(seed: int, rows: int, first: int) -> list[Row]:
    source = random.Random(seed)
    return [
        (
            source.choice(["x", "y", "v", None]),
            f"{source.randint(first, 99)}{source.randint(0, 1)}",
            source.choice("abc"),
        )
        for _ in range(rows)
    ]
