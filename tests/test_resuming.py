"""Runs that were stopped are taken up: what is released is what a run from the beginning releases."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import ConflictError, PolicyError, VerificationError
from sqlanon.plan.plan import resolve
from sqlanon.policy import Policy
from sqlanon.policy.loading import load_policy
from sqlanon.report.release_audit.auditing import audit_classes
from sqlanon.results.run_result import Resumed, RunResult
from sqlanon.runs.checkpoints import basis_of, looked_at
from sqlanon.runs.fingerprint import digest_rows
from sqlanon.runs.resuming import resume_run
from sqlanon.work.journal import Observer, Silent
from sqlanon.work.session import open_session
from sqlanon.work.workspace import Workspace, gc
from tests.cli.support import call, make_patients, only_object, write_policy
from tests.conftest import ENGINES
from tests.run_support import OPTIONS, Database, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

ROWS = [(n * 7 % 23, "abcd"[n % 4] + str(n % 3), n * n % 5, n) for n in range(80)]
COLUMNS = {"a": "INTEGER", "b": "VARCHAR(9)", "s": "INTEGER", "id": "INTEGER"}
LEVELED = {
    "a": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "b": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
}
PLAIN: dict[str, Any] = {"a": "quasi-identifier", "b": "quasi-identifier"}
MODELS = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "s", "l": 2}]
SEARCHES: dict[str, dict[str, Any]] = {
    "mondrian": {"algorithm": {"name": "mondrian"}},
    "rothko-t": {"algorithm": {"name": "rothko-t", "split": "information-gain", "target": "s"}},
    "rothko-s": {"algorithm": {"name": "rothko-s"}},
    "top-down": {"algorithm": {"name": "top-down"}},
    "optimal": {"algorithm": {"name": "optimal"}, "suppression": 0.1},
    "starred": {"algorithm": {"name": "optimal"}, "suppression": 0.2, "suppressed": "star"},
}


class Stopped(BaseException):
    """As `kill -9` would: nothing is cleared up."""


@pytest.fixture
def policy(database: Database) -> Policy:
    return policy_of_search(database, "mondrian")


class Stopping(Silent):
    """An observer that stops the run when it comes to a phase."""

    def __init__(self, phase: str) -> None:
        self.at, self.run = phase, ""

    def started(self, run: str) -> None:
        self.run = run

    def phase(self, name: str) -> None:
        if name == self.at:
            raise Stopped


def policy_of_search(database: Database, search: str) -> Policy:
    name = database.create(COLUMNS, ROWS)
    leveled = search in ("top-down", "optimal", "starred")
    roles = {**(LEVELED if leveled else PLAIN), "s": "sensitive", "id": "insensitive"}
    return database.policy(name, roles, privacy=MODELS, **SEARCHES[search])


def stopped(policy: Policy, phase: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run that comes as far as to this phase, and whose work tables stay; its id."""

    observer = Stopping(phase)
    with killing(monkeypatch), pytest.raises(Stopped):
        anonymize(policy, replace=True, observer=observer)
    return observer.run


@contextlib.contextmanager
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is cleared up, and no end recorded."""
    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "close", lambda _workspace: None)
        patch.setattr(Catalog, "finish_run", lambda *_arguments, **_values: None)
        yield


def resumed(policy: Policy, run: str, observer: Observer | None = None) -> RunResult:
    return resume_run(run, policy, replace=True, options=OPTIONS, observer=observer)


def cleared(database: Database, policy: Policy) -> list[str]:
    with open_session(policy, OPTIONS) as session:
        gc(session.engine, session.catalog)
    return database.leftovers()


def release(database: Database, policy: Policy) -> list[Any]:
    return database.sql(f"SELECT * FROM {policy.release.table}")


@pytest.mark.parametrize(
    ("engine_name", "search"),
    [
        *((engine, search) for engine in ENGINES for search in ("mondrian", "optimal")),
        ("postgres", "rothko-t"),
        ("duckdb", "rothko-s"),
        ("postgres", "top-down"),
        ("duckdb", "starred"),
    ],
)
def test_a_resumed_run_releases_what_the_run_would_have(
    database: Database, search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_of_search(database, search)
    whole = anonymize(policy).as_json()
    expected = release(database, policy)
    run = stopped(policy, "verify", monkeypatch)
    outcome = resumed(policy, run)
    assert outcome.resumed == Resumed(run, reused=True, reason=None)
    assert release(database, policy) == expected
    result = outcome.as_json()
    assert result["verified"]
    assert result["published"]
    same = ("source", "release", "models", "metrics", "risk", "quasi_identifiers", "checks")
    assert {key: result[key] for key in same} == {key: whole[key] for key in same}
    assert {**result["algorithm"], "statements": 0} == {**whole["algorithm"], "statements": 0}
    assert cleared(database, policy) == []
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        kept = catalog.rules(outcome.run)
        assert kept is not None
        assert kept.leaves == catalog.rules(whole["run"]).leaves  # type: ignore[union-attr]
        assert catalog.checkpoint(outcome.run) is None
        assert catalog.recoding_digest(outcome.run) == catalog.recoding_digest(whole["run"])


@pytest.mark.parametrize("phase", ["recode", "publish"])
def test_what_a_stopped_run_leaves_by_phase(
    database: Database, policy: Policy, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(policy, phase, monkeypatch)
    outcome = resumed(policy, run)
    reused = phase in ("verify", "publish")
    assert outcome.resumed.reused == reused
    assert (run in outcome.notes[0], "used again" in outcome.notes[0]) == (True, True)
    assert outcome.published
    assert cleared(database, policy) == []


def test_a_source_that_has_changed_is_searched_anew(
    database: Database, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(policy, "verify", monkeypatch)
    database.sql(f"UPDATE {policy.source.table} SET s = 4 WHERE id = 9")
    outcome = resumed(policy, run)
    assert outcome.resumed == Resumed(run, reused=False, reason="the source has changed")
    assert outcome.published


def test_a_column_that_no_search_looks_at_changes_the_source_alone(
    database: Database, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run goes on where an insensitive column has changed, though an audit is told of another source."""
    run = stopped(policy, "verify", monkeypatch)
    database.sql(f"UPDATE {policy.source.table} SET id = 1000 WHERE id = 9")
    assert resumed(policy, run).resumed == Resumed(run, reused=True, reason=None)
    assert audit_classes(policy, options=OPTIONS).same_source
    database.sql(f"UPDATE {policy.source.table} SET id = 9 WHERE id = 1000")
    assert not audit_classes(policy, options=OPTIONS).same_source


def test_every_change_that_a_search_could_notice_is_noticed(database: Database, policy: Policy) -> None:
    def source() -> str:
        with connect(database.url) as engine:
            plan = resolve(policy, engine)
            (digest,) = digest_rows(engine, plan.source, looked_at(plan))
            return basis_of(engine, plan, SearchOptions(), digest).source

    table, found = policy.source.table, [source()]
    changes = ("SET a = 4", "SET b = 'zz'", "SET s = NULL", "SET a = NULL", "SET s = 4")
    for change in changes:
        database.sql(f"UPDATE {table} {change} WHERE id = 9")
        found.append(source())
    database.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 8")
    found.append(source())
    assert len(set(found)) == len(found)
    database.sql(f"UPDATE {table} SET id = 1000 WHERE id = 9")
    assert source() == found[-1]
    database.sql(f"ALTER TABLE {table} ALTER a TYPE FLOAT8")
    database.sql(f"UPDATE {table} SET a = 0 WHERE id = 8")
    zero = source()
    database.sql(f"UPDATE {table} SET a = NULL WHERE id = 8")
    assert source() != zero


def test_a_policy_that_has_changed_is_searched_anew(
    database: Database, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(policy, "verify", monkeypatch)
    stricter = policy.model_copy(update={"privacy": (policy.privacy[0].model_copy(update={"k": 9}), policy.privacy[1])})
    outcome = resumed(stricter, run)
    assert "policy" in outcome.resumed.reason
    assert outcome.as_json()["release"]["min_class_size"] >= 9
    assert cleared(database, policy) == []


def test_a_hierarchy_whose_file_has_changed_is_searched_anew(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b.csv"
    lines = [f"{letter}{digit};{letter};*" for letter in "abcd" for digit in range(3)]
    file.write_text("\n".join(lines))
    roles = {"a": "quasi-identifier", "b": {"role": "quasi-identifier", "hierarchy": {"csv": str(file)}}}
    policy = database.policy(database.create(COLUMNS, ROWS), {**roles, "s": "insensitive", "id": "insensitive"})
    run = stopped(policy, "verify", monkeypatch)
    file.write_text("\n".join(lines).replace(";d;", ";c;"))
    assert getattr(resumed(policy, run).resumed, "reason", None) == "a file of a hierarchy has changed"


def test_a_resumed_run_is_verified_anew(database: Database, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that do not satisfy the models publish nothing, whatever their checkpoint says."""
    database.sql(f"CREATE TABLE {policy.release.table} AS SELECT 0 AS old")
    before = release(database, policy)
    loose = policy.model_copy(update={"privacy": (policy.privacy[0].model_copy(update={"k": 1}),)})
    strict, run = stopped(policy, "verify", monkeypatch), stopped(loose, "verify", monkeypatch)
    contents = dict(database.sql("SELECT run, content FROM sqlanon.checkpoints"))
    forged = {**json.loads(contents[run]), "basis": json.loads(contents[strict])["basis"]}
    database.sql("UPDATE sqlanon.checkpoints SET content = ? WHERE run = ?", [json.dumps(forged), run])
    with pytest.raises(VerificationError):
        resumed(policy, run)
    assert release(database, policy) == before


def test_what_cannot_be_resumed(database: Database, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    published = anonymize(policy).run
    with pytest.raises(PolicyError, match="was published"):
        resumed(policy, published)
    with pytest.raises(PolicyError, match="no run"):
        resumed(policy, "nonesuch")

    class Resuming(Silent):
        def started(self, run: str) -> None:
            with pytest.raises(ConflictError, match="goes on"):
                resumed(policy, run)

    assert anonymize(policy, replace=True, observer=Resuming()).published
    run = stopped(policy, "verify", monkeypatch)
    assert cleared(database, policy) == []
    outcome = resumed(policy, run)
    assert "cleared up" in outcome.resumed.reason


def test_a_run_that_is_stopped_again_can_be_resumed_again(
    database: Database, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(policy, "verify", monkeypatch)
    with killing(monkeypatch), pytest.raises(Stopped):
        resume_run(run, policy, replace=True, options=OPTIONS, observer=Stopping("verify"))
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        (again,) = (one.id for one in catalog.runs() if one.id != run)
    assert getattr(resumed(policy, again).resumed, "reused", None)
    assert cleared(database, policy) == []


@pytest.mark.parametrize("engine_name", ENGINES)
def test_a_stopped_run_that_is_taken_up_is_seen_as_dead_and_left_alone(
    database: Database, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(policy, "verify", monkeypatch)
    seen: set[tuple[str, ...]] = set()

    class Onlooker(Silent):
        def phase(self, name: str) -> None:
            if name == "recode":
                with connect(database.url) as engine, Catalog.open(engine) as catalog:
                    living = [one for one in catalog.living_runs() if one == run]
                    seen.add((*living, *gc(engine, catalog)))
                with pytest.raises(ConflictError, match="takes it up"):
                    resumed(policy, run)

    outcome = resumed(policy, run, Onlooker())
    assert outcome.resumed is not None
    assert (outcome.resumed.reused, seen) == (True, {()})
    assert cleared(database, policy) == []


def test_the_command_says_what_it_did(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_patients(database_url)
    path = write_policy(tmp_path, database_url)
    run = stopped(load_policy(path), "verify", monkeypatch)
    result = only_object(call("run", path, "--resume", run[-4:], "--json").stdout)
    assert result["resumed"] == {"run": run, "reused": True, "reason": None}
    assert "was published" in call("run", path, "--resume", result["run"], "--replace").stderr
    assert call("run", path, "--resume", run, "--dry-run").exit_code == 2


@pytest.mark.parametrize("remedy", ["resume", "gc"])
def test_killed_between_a_file_and_its_record(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remedy: str
) -> None:
    """The file is there, whole, and the catalog does not know of it until the run is taken up or done again."""
    file, name = tmp_path / "released.csv", database.create(COLUMNS, ROWS)
    roles = {**PLAIN, "s": "sensitive", "id": "insensitive"}
    policy = database.policy(name, roles, privacy=MODELS, release={"file": str(file)})

    def die(*_arguments: object) -> None:
        raise Stopped

    with killing(monkeypatch), monkeypatch.context() as patch:
        patch.setattr(Catalog, "record_release", die)
        with pytest.raises(Stopped):
            anonymize(policy)
    before = file.read_bytes()
    ((run, status),) = database.sql("SELECT id, status FROM sqlanon.runs")
    assert status == "running"
    if remedy == "gc":
        assert cleared(database, policy) == []
        assert database.sql("SELECT status FROM sqlanon.runs") == [("failed",)]
        assert database.sql("SELECT * FROM sqlanon.releases") == []
        assert anonymize(policy, replace=True).published
    else:
        assert resumed(policy, run).published
    assert file.read_bytes() == before
    assert len(database.sql("SELECT * FROM sqlanon.releases")) == 1
