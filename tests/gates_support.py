"""The ways by which something leaves the program, each ready to be gone on a small table of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sqlanon import grant_budget
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.inquiries.questions.ask import ask
from sqlanon.inquiries.questions.ask_with_noise import ask_with_noise
from sqlanon.methods.clustering.streams import release_job, update_job
from sqlanon.policy import Policy
from sqlanon.policy.dividing import build_tables
from sqlanon.policy.document import Document
from sqlanon.policy.loading import build_policy
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from sqlanon.runs.tables.together import run_tables
from sqlanon.work.journal import Observer
from tests.hiding_support import hide, hiding_policy
from tests.inquiries.questions.test_asking import COLUMNS as ASKED_COLUMNS
from tests.inquiries.questions.test_asking import ROWS as ASKED_ROWS
from tests.inquiries.questions.test_asking import policy_of as asked_policy
from tests.jobs_support import ROLES as JOB_ROLES
from tests.jobs_support import carry_out, frozen, simple
from tests.masking_support import mask, masking_policy
from tests.methods.differential_privacy.test_private import ATTRIBUTES, COLUMNS, rows_of
from tests.methods.generalization.federation.support import NAMES
from tests.methods.generalization.federation.threads import Room, sites_of
from tests.methods.generalization.federation.threads import release as release_together
from tests.private_support import draw, private_policy
from tests.randomize_support import randomize, randomized_policy
from tests.run_support import OPTIONS, Database, anonymize
from tests.test_resuming import policy_of_search, resumed, stopped

PEOPLE = {"q": "INTEGER", "id": "INTEGER"}
ROWS = [(n % 17, n) for n in range(60)]
ROLES = {"q": "quasi-identifier", "id": "insensitive"}
GATES = ("republish", "lock", "progress", "cancel", "record")


@dataclass
class Ready:
    """A way that can be gone. source: the table that it reads. go: gives the id of the run that it comes to."""

    policy: Policy
    source: str
    go: Callable[[Observer | None], str]


@dataclass(frozen=True)
class Way:
    """A way out. starts: the functions of the program that begin it. lacks: gates that are not before it, and why.

    phase: in which it is held. shown: the phase that others see then, if it is another one.
    """

    starts: tuple[str, ...]
    ready: Callable[[Database, Path, pytest.MonkeyPatch], Ready]
    lacks: Mapping[str, str] = field(default_factory=dict)
    phase: str = "publish"
    shown: str | None = None
    engines: tuple[str, ...] = ("duckdb", "postgres")


def _people(database: Database, **more: Any) -> tuple[str, Policy]:
    name = database.create(PEOPLE, ROWS)
    return name, database.policy(name, ROLES, **more)


def _run(database: Database, directory: Path, _patch: pytest.MonkeyPatch, *, to_file: bool = False) -> Ready:
    name, policy = _people(database, **({"release": {"file": str(directory / "released.csv")}} if to_file else {}))
    return Ready(policy, name, lambda observer: anonymize(policy, replace=True, observer=observer).run)


def _apply(database: Database, directory: Path, _patch: pytest.MonkeyPatch, *, to_file: bool = False) -> Ready:
    _, policy = _people(database)
    newer = database.create(PEOPLE, ROWS)
    found = anonymize(policy).run
    out = str(directory / "applied.csv") if to_file else f"{newer}_r"
    release = {"file": out} if to_file else {"table": out}

    def go(observer: Observer | None) -> str:
        with connect(database.url) as engine, Catalog.open(engine) as catalog:
            run = catalog.run(found)
        wanted = Application(found, newer, out, replace=True)
        return apply_rules(wanted, run, (database.url, "sqlanon"), policy, options=OPTIONS, observer=observer).run

    return Ready(database.policy(newer, ROLES, release=release), newer, go)


def _job(database: Database, _directory: Path, _patch: pytest.MonkeyPatch, *, procedure: bool) -> Ready:
    name, run = simple(database)
    frozen(database, run, **({} if procedure else {"procedure": False}))
    policy = database.policy(name, JOB_ROLES)

    def go(observer: Observer | None) -> str:
        return str(carry_out(database, observer=observer)["run"])

    return Ready(policy, name, go)


def _resume(database: Database, _directory: Path, patch: pytest.MonkeyPatch) -> Ready:
    policy = policy_of_search(database, "mondrian")
    run = stopped(policy, "verify", patch)
    return Ready(policy, policy.source.table or "", lambda observer: resumed(policy, run, observer).run)


def _stream(database: Database, _directory: Path, _patch: pytest.MonkeyPatch, *, updates: bool = False) -> Ready:
    first, name = (database.create(PEOPLE, ROWS) for _ in range(2))
    roles = {"q": "quasi-identifier", "id": "identifier"}
    policy = database.policy(first, roles, algorithm={"name": "condensation"})
    job = f"of_{first}"
    update_job(policy, job, name, OPTIONS)

    def update(observer: Observer | None) -> str:
        update_job(policy, job, name, OPTIONS, observer)
        with connect(database.url) as engine, Catalog.open(engine) as catalog:
            return catalog.runs_of_job(job)[0].id

    def release(observer: Observer | None) -> str:
        return release_job(policy, job, replace=True, options=OPTIONS, observer=observer).run

    return Ready(policy, name, update if updates else release)


def _randomize(database: Database, _directory: Path, _patch: pytest.MonkeyPatch) -> Ready:
    name = database.create(PEOPLE, ROWS)
    policy = randomized_policy(database, name, ROLES, {"q": {"noise": "gaussian", "deviation": 3}})
    return Ready(policy, name, lambda observer: randomize(policy, replace=True, observer=observer).run)


def _hide(database: Database, _directory: Path, _patch: pytest.MonkeyPatch) -> Ready:
    columns = {"basket": "INTEGER", "item": "VARCHAR(9)"}
    name = database.create(columns, [(basket, item) for basket in range(6) for item in "abc"])
    policy = hiding_policy(database, name, columns, [{"if": ["a"], "then": ["b"]}])
    return Ready(policy, name, lambda observer: hide(policy, replace=True, observer=observer).run)


def _mask(database: Database, _directory: Path, _patch: pytest.MonkeyPatch) -> Ready:
    name = database.create(PEOPLE, ROWS)
    policy = masking_policy(database, name, dict.fromkeys(PEOPLE, "insensitive"))
    return Ready(policy, name, lambda observer: mask(policy, replace=True, observer=observer).run)


def _tables(database: Database, _directory: Path, _patch: pytest.MonkeyPatch) -> Ready:
    for schema in ("together", "together_r"):
        database.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        database.sql(f"CREATE SCHEMA {schema}")
    name = database.create(PEOPLE, ROWS, "together.people")
    republish = database.policy(name, ROLES).republish
    data = {
        **({} if republish is None else {"republish": republish}),
        "source": {"url": database.url, "schema": "together"},
        "release": {"schema": "together_r"},
        "people": {"table": "people", "key": "id"},
        "tables": {"people": {"attributes": {"id": {"role": "identifier"}, "q": {"role": "quasi-identifier"}}}},
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }
    tables = build_tables(Document(data), None)

    def go(observer: Observer | None) -> str:
        return run_tables(tables, replace=True, options=OPTIONS, observer=observer)["people"].run

    return Ready(tables.people.policy, name, go)


def _private(database: Database, _directory: Path, _patch: pytest.MonkeyPatch, **algorithm: Any) -> Ready:
    name = database.create(COLUMNS, rows_of(40, 1))
    policy = private_policy(database, name, ATTRIBUTES, **algorithm)
    return Ready(policy, name, lambda observer: draw(policy, observer=observer).run)


def _federate(_database: Database, directory: Path, _patch: pytest.MonkeyPatch) -> Ready:
    sites = sites_of(directory, 1)
    policy = sites.policy(NAMES[0])

    def go(observer: Observer | None) -> str:
        results = release_together(sites, Room(NAMES, **sites.plan), observers={NAMES[0]: observer})
        result = results[NAMES[0]]
        if isinstance(result, Exception):
            raise result
        return str(result.run)

    return Ready(build_policy(policy), "persons", go)


def _ask(database: Database, _directory: Path, _patch: pytest.MonkeyPatch) -> Ready:
    name = database.create(ASKED_COLUMNS, ASKED_ROWS)
    policy = asked_policy(database, name)

    def go(_: Observer | None) -> str:
        return str(ask(policy, "count(*) where age between 30 and 33", OPTIONS).number)

    return Ready(policy, name, go)


def _ask_with_noise(database: Database, _directory: Path, _patch: pytest.MonkeyPatch) -> Ready:
    name = database.create(COLUMNS, rows_of(40, 1))
    budget = {"ledger": name, "epsilon": 3}
    policy = private_policy(database, name, ATTRIBUTES, name="contingency", target="pay", budget=budget)
    grant_budget(policy, 2, "a test", options=OPTIONS)
    return Ready(policy, name, lambda _: ask_with_noise(policy, "count(*)", "0.1", OPTIONS).ledger)


_FEDERATION = "methods.generalization.federation"
_OF_ANSWERS = {
    "republish": "no recoding: answers are judged together, by the audit or the budget",
    "lock": "no release: the lock of the history, or of the ledger, is held",
    "progress": "no run: an answer is one statement",
    "cancel": "no run: an answer is one statement",
    "record": "in the history, or the ledger",
}
_OF_JOBS = {"republish": "its recoding was released before"}
_PRIVATE: dict[str, dict[str, Any]] = {
    "contingency": {"name": "contingency", "target": "pay"},
    "diffgen": {"name": "diffgen", "target": "pay", "specializations": 2},
    "marginals": {"name": "marginals", "target": "pay", "marginals": [["job", "pay"], ["age", "job"]]},
    "mst": {"name": "mst", "target": "pay"},
}
WAYS: dict[str, Way] = {
    "run": Way(("runs.sources.run",), _run),
    "run to a file": Way(("runs.sources.run",), partial(_run, to_file=True)),
    "apply": Way(("runs.applying.apply_rules",), _apply),
    "apply to a file": Way(("runs.applying.apply_rules",), partial(_apply, to_file=True)),
    "job of the program": Way(("runs.applying.apply_rules",), partial(_job, procedure=False), _OF_JOBS),
    "job of the database": Way(
        ("jobs.running.run_procedure",),
        partial(_job, procedure=True),
        _OF_JOBS | {"progress": "PL/pgSQL tells nothing on its way", "cancel": "by its query: tests/test_control.py"},
        engines=("postgres",),
    ),
    "resume": Way(("runs.resuming.resume_run",), _resume),
    "condense update": Way(
        ("methods.clustering.streams.update_job",),
        partial(_stream, updates=True),
        {"republish": "nothing is published", "lock": "no release: the lock of the statistics is held"},
        phase="search",
    ),
    "condense release": Way(("methods.clustering.streams.release_job",), _stream),
    "randomize": Way(("runs.sources.run",), _randomize),
    "hide": Way(("runs.sources.run",), _hide),
    "mask": Way(("runs.sources.run",), _mask),
    "tables": Way(("runs.tables.together._go_on",), _tables, phase="publish people", shown="publish"),
    **{
        f"private {name}": Way(("runs.sources.run",), partial(_private, **algorithm), shown="private")
        for name, algorithm in _PRIVATE.items()
    },
    "federate serve": Way((f"{_FEDERATION}.serving.release_together",), _federate, engines=("duckdb",)),
    "ask": Way(("inquiries.questions.ask.answer",), _ask, _OF_ANSWERS),
    "ask with noise": Way(("inquiries.questions.ask_with_noise.ask_with_noise",), _ask_with_noise, _OF_ANSWERS),
}
