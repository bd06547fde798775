"""Every way out of the program against every gate: what may be published, alone, seen, stopped, and written down."""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from sqlanon.catalog import Catalog, ReleaseKind, ReleaseRecord, RunStart, Status
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import AccessError, Cancelled, ConflictError, EngineError, PolicyError
from sqlanon.methods.clustering.streams import release_job, update_job
from sqlanon.plan.plan import find_release
from sqlanon.policy import Policy
from sqlanon.runs.sink import Sink
from sqlanon.sql import Relation, Statement
from sqlanon.work.journal import Silent
from sqlanon.work.session import open_session
from sqlanon.work.workspace import Workspace, release_lock
from tests.conftest import ENGINES
from tests.gates_support import GATES, PEOPLE, ROWS, WAYS, Ready, Way
from tests.methods.generalization.federation.sites import Sites
from tests.patience import PATIENCE, wait_until
from tests.run_support import OPTIONS, Database, anonymize, open_database
from tests.test_architecture import PROGRAM
from tests.test_control import At, asked, seen
from tests.test_control import quick as quick  # a fixture

SITE = Sites.policy
PASSING = {
    gate: [(engine, name) for name, way in WAYS.items() for engine in way.engines if gate not in way.lacks]
    for gate in GATES
}


@pytest.fixture
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


@pytest.fixture
def ready(way: Way, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ready:
    return way.ready(database, tmp_path, monkeypatch)


def against(gate: str) -> pytest.MarkDecorator:
    """Try every way that the gate is before, on every engine."""
    return pytest.mark.parametrize(("engine_name", "way"), PASSING[gate], indirect=["way"])


def release_under_one_recoding(policy: Policy, table: str) -> str:
    """Record that a policy with `republish: same-recoding` released a table; the run."""
    with open_session(policy, OPTIONS) as session:
        return _release_in(session.catalog, session.engine, table)


def _release_in(catalog: Catalog, engine: Engine, table: str) -> str:
    source = engine.resolve(Relation.parse(table))
    run = catalog.start_run(RunStart(str(source), "earlier", '{"republish": "same-recoding"}', "mondrian", "1"))
    catalog.record_release(run, ReleaseRecord("earlier", ReleaseKind.REGIONS, 1, 0, 1, "{}", "rules-1:other"))
    catalog.finish_run(run, Status.PUBLISHED)
    return run


def is_there(policy: Policy) -> bool:
    """Tell whether the release of a policy is."""
    if policy.release.file is not None:
        return Path(policy.release.file).exists()
    with connect(policy.source.url or "") as engine:
        return engine.resolve(Relation.parse(policy.release.table or "")) is not None


@against("republish")
def test_what_an_earlier_release_forbids_is_refused(ready: Ready) -> None:
    run = release_under_one_recoding(ready.policy, ready.source)
    with pytest.raises(PolicyError, match=f"republish: same-recoding, in the policy of run {run}, forbids it"):
        ready.go(None)
    assert not is_there(ready.policy)


@against("republish")
def test_what_an_earlier_release_in_another_catalog_forbids_is_refused(ready: Ready) -> None:
    with connect(ready.policy.source.url or "") as engine, Catalog.open(engine, "second") as catalog:
        run = _release_in(catalog, engine, ready.source)
    forbidden = rf"in the policy of run {run} \(in the catalog of schema \"second\"\), forbids it"
    with pytest.raises(PolicyError, match=forbidden):
        ready.go(None)
    assert not is_there(ready.policy)


@against("republish")
def test_what_a_catalog_may_hold_that_is_not_to_be_read_is_refused(
    way: Way, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy wants one recoding, and a release that nobody can look up may be by another recoding."""
    monkeypatch.setattr(database, "policy", partial(database.policy, republish="same-recoding"))
    monkeypatch.setattr(Sites, "policy", lambda sites, name: SITE(sites, name) | {"republish": "same-recoding"})
    ready = way.ready(database, tmp_path, monkeypatch)
    with connect(ready.policy.source.url or "") as engine, Catalog.open(engine, "second"):
        engine.execute(Statement("test", "UPDATE second.alembic_version SET version_num = '9999'"))
    with pytest.raises(AccessError, match=r'The catalog in schema "second" can.t be read.* upgrade sqlanon'):
        ready.go(None)
    assert not is_there(ready.policy)


@against("republish")
def test_what_was_released_meanwhile_forbids_it_too(way: Way, ready: Ready) -> None:
    """Another run has published since this one was planned."""
    at = At(way.phase)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(ready.go, at)
        try:
            assert at.reached.wait(PATIENCE)
            release_under_one_recoding(ready.policy, ready.source)
        finally:
            at.go.set()
        with pytest.raises(PolicyError, match="republish: same-recoding"):
            run.result(PATIENCE)
    assert not is_there(ready.policy)


def living(policy: Policy) -> list[tuple[str, str]]:
    """The runs that go on, and their phases."""
    return [(one.run, one.phase) for one in seen(policy) if one.alive]


@against("lock")
def test_nobody_else_writes_the_release_meanwhile(ready: Ready) -> None:
    with (
        connect(ready.policy.source.url or "") as engine,
        open_session(ready.policy, OPTIONS) as session,
        lock_of(ready.policy, engine, session.catalog),
        pytest.raises(ConflictError, match="Another run is writing"),
    ):
        ready.go(None)


def lock_of(policy: Policy, engine: Engine, catalog: Catalog) -> contextlib.AbstractContextManager[None]:
    keeper = engine if engine.traits.has_locks else catalog.store
    if policy.release.file is not None:
        return release_lock(engine, Relation("file"), Path(policy.release.file).resolve(), keeper=keeper)
    return release_lock(engine, find_release(policy, None, engine, replace=True)[0], keeper=keeper)


@against("cancel")
def test_others_see_the_run_and_cancel_it(way: Way, ready: Ready) -> None:
    was_there, at = is_there(ready.policy), At(way.phase)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(ready.go, at)
        try:
            assert at.reached.wait(PATIENCE)
            wait_until(lambda: (at.run, way.shown or way.phase) in living(ready.policy))
            asked(ready.policy, at.run)
        finally:
            at.go.set()
        with pytest.raises(Cancelled, match="another terminal"):
            run.result(PATIENCE)
    assert is_there(ready.policy) is was_there
    with open_session(ready.policy, OPTIONS) as session:
        assert session.catalog.run(at.run).status is Status.CANCELLED


@against("record")
def test_the_run_is_recorded(way: Way, ready: Ready) -> None:
    run = ready.go(None)
    with open_session(ready.policy, OPTIONS) as session:
        recorded = session.catalog.run(run)
        publishes = "nothing is published" not in way.lacks.values()
        assert recorded.status is (Status.PUBLISHED if publishes else Status.JOINED)
        assert bool(session.catalog.releases(run)) is publishes
        assert living(ready.policy) == []


@against("cancel")
def test_a_run_whose_end_is_not_recorded_says_what_it_did(ready: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **_more: object) -> None:
        raise EngineError("no more")

    monkeypatch.setattr(Catalog, "finish_run", fail)
    with pytest.raises(EngineError, match="no more") as raised:
        ready.go(None)
    assert re.search("WAS published|HAVE joined", "".join(getattr(raised.value, "__notes__", [])))


@pytest.mark.parametrize("engine_name", ENGINES)
def test_what_a_stream_released_binds_later_runs(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each table whose rows joined it, under the policy of the stream."""
    stream = WAYS["condense release"].ready(database, tmp_path, monkeypatch)
    bound = stream.policy.model_copy(update={"republish": "same-recoding"})
    run = release_job(bound, f"of_{stream.policy.source.table}", options=OPTIONS).run
    for table in (stream.source, stream.policy.source.table):
        later = database.policy(table or "", {"q": "quasi-identifier", "id": "identifier"}, release={"table": "later"})
        with pytest.raises(PolicyError, match=f"in the policy of run {run}, forbids it"):
            anonymize(later)


@pytest.mark.parametrize("engine_name", ENGINES)
def test_rows_of_an_update_that_fails_after_its_commit_have_joined(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record says so, and the gates of the release ask about their table."""
    stream = WAYS["condense release"].ready(database, tmp_path, monkeypatch)
    newer, job = database.create(PEOPLE, ROWS), f"of_{stream.policy.source.table}"
    close = Workspace.close

    def close_and_fail(workspace: Workspace) -> None:
        close(workspace)
        raise EngineError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "close", close_and_fail)
        with pytest.raises(EngineError, match="no more") as failed:
            update_job(stream.policy, job, newer, OPTIONS)
    assert "HAVE joined" in failed.value.__notes__[0]
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        assert catalog.runs_of_job(job)[0].status is Status.JOINED
    run = release_under_one_recoding(stream.policy, newer)
    with pytest.raises(PolicyError, match=f"in the policy of run {run}, forbids it"):
        stream.go(None)


class Interrupted(Silent):
    """An observer in whose phase somebody presses Ctrl-C."""

    def __init__(self, phase: str) -> None:
        self.at = phase

    def phase(self, name: str) -> None:
        if name == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("engine_name", ["duckdb"])
@pytest.mark.parametrize("way", sorted({name for _, name in PASSING["cancel"]} - {"federate serve"}), indirect=True)
def test_an_interrupted_run_is_cancelled(way: Way, ready: Ready) -> None:
    was_there = is_there(ready.policy)
    with pytest.raises(Cancelled, match="Interrupted"):
        ready.go(Interrupted(way.phase))
    assert is_there(ready.policy) is was_there


class Writing(Silent):
    """An observer that writes two rows to the source as soon as the run is planned."""

    def __init__(self, database: Database, ready: Ready) -> None:
        self.database, self.ready = database, ready

    def started(self, run: str) -> None:  # noqa: ARG002
        with open_database(self.database.url) as other:
            other.sql(f"INSERT INTO {self.ready.source} SELECT * FROM {self.ready.source} LIMIT 2")


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize("kind", ["run", "run to a file", "apply", "resume", "randomize", "condense update"])
def test_rows_that_came_after_the_plan_are_in_the_record(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    ready = WAYS[kind].ready(database, tmp_path, monkeypatch)
    [(rows,)] = database.sql(f"SELECT count(*) FROM {ready.source}")
    run = ready.go(Writing(database, ready))
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        assert catalog.run(run).source_rows == rows + 2
        assert {one.row_count for one in catalog.releases(run)} <= {rows + 2}


# --- a way out that nobody knows of


def calls(wanted: set[str], templates: set[str]) -> Iterator[str]:
    """Yield each function of the program that calls one of these names, or names one of these templates."""
    for path in PROGRAM.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in wanted | templates):
            continue
        module = ".".join(path.relative_to(PROGRAM).with_suffix("").parts)
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef) and any(
                _names(node, wanted, templates) for node in ast.walk(function)
            ):
                yield f"{module}.{function.name}"


def _names(node: ast.AST, wanted: set[str], templates: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name in wanted
        case ast.Constant(value=str() as text):
            return text in templates
    return False


def descendants(parent: type) -> set[str]:
    return {parent.__name__}.union(*map(descendants, parent.__subclasses__()))


NO_WAYS = {
    "methods.differential_privacy.mechanism_audit.": "an audit releases a generated table, in memory",
    "runs.tradeoffs.": "a sweep measures releases, and makes none",
    "runs.dry_run.": "a dry run prints the statements, and sends those that only ask",
    "algorithms.": "parts of the ways",
    "runs.accounts.adopting.": "an adoption enters a release that is out already, and publishes nothing",
    "methods.differential_privacy.drawing.": "draws of a private run, which `runs.sources.run` begins",
}
ANSWERS = {"write_question", "add_noise"}


def test_every_way_out_is_in_the_matrix() -> None:
    """Whoever makes a destination, calls a procedure, or answers a question, is listed."""
    for path in PROGRAM.rglob("*.py"):
        if re.search(r"^class \w+\((Publish|Sink)\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            importlib.import_module(".".join(("sqlanon", *path.relative_to(PROGRAM).with_suffix("").parts)))
    made = descendants(Sink)
    begin = set(calls(made | ANSWERS, {"jobs/call_procedure"}))
    listed = {start for way in WAYS.values() for start in way.starts}
    assert {where for where in begin if not where.startswith(tuple(NO_WAYS))} == listed


def test_nothing_publishes_but_through_the_gates() -> None:
    """Publishing of staged releases, and taking rows out of one, is called where the gates are alone."""
    call = re.compile(r"(?<![\w.])(staged\.publish|publish_star|publish|publisher_of\(.*\)\.remove)\(")
    publishing = {
        (".".join(path.relative_to(PROGRAM).with_suffix("").parts), name)
        for path in PROGRAM.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.lstrip().startswith("def ")
        for name in call.findall(line)
    } | {("delete_places", found) for found in calls({"_remove"}, {"work/publish/delete_places"})}
    assert publishing == {
        ("runs.gates", "staged.publish"),
        ("runs.gates", "publisher_of(session, enter).remove"),
        ("delete_places", "engines.duckdb.publishing.remove"),
        ("delete_places", "engines.postgres.publishing.remove"),
        ("delete_places", "engines.publishing._remove"),
        ("staging.pair", "publish"),
        ("staging.staging", "publish"),
        ("staging.staging", "publish_star"),
    }


def test_the_matrix_says_of_every_gate_why_it_is_missing() -> None:
    assert {gate for way in WAYS.values() for gate in way.lacks} <= set(GATES)
    assert all(reason for way in WAYS.values() for reason in way.lacks.values())
