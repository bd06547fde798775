"""runs, show, gc, db: what the catalog holds, and its upkeep."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.call import Call, Panel, command, expanded, policies_here
from sqlanon.cli.deferred import catalog as catalogs
from sqlanon.cli.deferred import dialects, embedded, loading, location, plans, workspace
from sqlanon.cli.deferred import session as sessions
from sqlanon.cli.deferred import watch as watching
from sqlanon.cli.layout import number, place_text, table
from sqlanon.cli.release_texts import texts_of
from sqlanon.cli.writing import quoted
from sqlanon.engines import connect
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.catalog import Catalog, Run, Step
    from sqlanon.catalog.location import CatalogAddress
    from sqlanon.engines.base import Engine

_WHERE = "Where the catalog is"
UrlOption = Annotated[
    str | None, typer.Option("--url", envvar="SQLANON_URL", help="A database's URL.", rich_help_panel=_WHERE)
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        "-p",
        help="A policy, whose catalog is meant. If neither is given: that of policy.yml, or of the only policy in the "
        "working directory, or sqlanon.duckdb there.",
        rich_help_panel=_WHERE,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "runs", Panel.HISTORY)(runs_command)
    command(app, "show", Panel.HISTORY)(show_command)
    command(app, "cancel", Panel.HISTORY)(cancel_command)
    command(app, "gc", Panel.UPKEEP, limits=True)(gc_command)
    database = typer.Typer(help="The catalog's tables: upgrade, downgrade, current.", no_args_is_help=True)
    command(database, "upgrade")(upgrade_command)
    command(database, "downgrade")(downgrade_command)
    command(database, "current")(current_command)
    app.add_typer(database, name="db", rich_help_panel=Panel.UPKEEP)


@contextlib.contextmanager
def opened(
    call: Call, url: str | None, policy: Path | None, *, upgrade: bool = False
) -> Iterator[tuple[Engine, Catalog]]:
    """The catalog of a policy or of a database, and a session with the database it is in."""
    place = place_of(url, policy)
    with (
        connect(place.url, call.options) as engine,
        catalogs.Catalog(engine, engine, place) as catalog,
    ):
        catalog.refuse_mistaken(place)
        if upgrade or catalog.current() is not None:
            catalog.upgrade()
        yield engine, catalog


def place_of(url: str | None, policy: Path | None, *, makes: bool = False) -> CatalogAddress:
    """The place of the catalog that a command is about; makes: the command makes a file that is not there."""
    if policy is not None:
        return _place_of_policy(policy, makes)
    if url is None and (several := policies_here()):
        raise PolicyError(
            f"Which catalog? There are several policies here: {', '.join(map(str, several))}. Give one of them, such as"
            f" --policy {quoted(several[0])}, or --url."
        )
    if url is None:
        raise PolicyError(
            f"Which catalog? Give --url or --policy, or set SQLANON_URL; there is no policy (policy.yml) and no "
            f"{sessions.LOCAL_CATALOG} here."
        )
    url = expanded(url)
    dialects.require_catalog(url)
    return location.CatalogAddress(url, catalogs.SCHEMA, is_of_policy=False)


def _place_of_policy(path: Path, makes: bool) -> CatalogAddress:
    """The catalog of a policy; raises PolicyError where it is to be a file of its own, and no run has made it."""
    policy = loading.load_policy(path)
    place = sessions.catalog_place(policy)
    file = embedded.database_file(place.url)
    if not makes and policy.source.file is not None and file is not None and not file.exists():
        raise PolicyError(f"No run of {path} is recorded yet: its catalog, {file}, is made by the first.")
    return place


def runs_command(
    call: Call,
    url: UrlOption = None,
    policy: PolicyOption = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest first.")] = 20,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show those that go on, and how far they are, until none does.")
    ] = False,
) -> None:
    """List the runs that the catalog holds, the newest first, or watch those that go on."""
    if watch:
        watching.watch_runs(call, place_of(url, policy))
        return
    try:
        with opened(call, url, policy) as (_, catalog):
            runs = catalog.runs(limit) if catalog.current() is not None else []
            going_on = any(run.status is catalogs.Status.RUNNING for run in runs)
            living = catalog.living_runs() if going_on else []
    except ConflictError as error:
        error.add_note("`sqlanon runs --watch` shows the runs that go on in it.")
        raise
    if call.json:
        call.emit({"runs": [run_object(run) | _alive(run, living) for run in runs]})
    elif not runs:
        call.note("No run is recorded here.")
    else:
        rows = [_row(run, living) for run in runs]
        print(table(["run", "status", "started (UTC)", "rows", "source", "release"], rows, indent=""))


def _alive(run: Run, living: Sequence[str]) -> dict[str, bool]:
    """Tell of a run that has not ended whether its process lives."""
    return {"alive": run.id in living} if run.status is catalogs.Status.RUNNING else {}


def _row(run: Run, living: Sequence[str]) -> list[object]:
    status = run.status.value if _alive(run, living).get("alive", True) else "dead: sqlanon gc"
    started = f"{run.started:%Y-%m-%d %H:%M:%S}"
    places = place_text(run.source), place_text(run.release)
    return [run.id, status, started, run.source_rows, *places]


def run_object(run: Run) -> dict[str, Any]:
    """A run as programs read it."""
    values = {"run": run.id, **asdict(run), "result": _result_object(run)}
    del values["id"], values["recorded"]
    error = {"type": values.pop("error_class"), "message": values.pop("error_message")}
    started, finished = values.pop("started"), values.pop("finished")
    return {
        **values,
        "status": run.status.value,
        "started": started.isoformat(),
        "finished": finished.isoformat() if finished else None,
        "error": error if error["type"] else None,
    }


def _result_object(run: Run) -> dict[str, Any] | None:
    """The result of a run; None where it came to none."""
    return None if run.any_result is None else run.any_result.as_json()


def cancel_command(
    call: Call,
    run: Annotated[str, typer.Argument(help="The run's id, its beginning, or its last four digits.")],
    url: UrlOption = None,
    policy: PolicyOption = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until it has ended.")] = 30.0,
) -> None:
    """End a run that goes on, from another terminal: its query is cancelled, its work tables are dropped.

    Nothing is published then. Exit code 1 if it has not ended in time, or had come to its end before.
    """
    watching.cancel_run(call, place_of(url, policy), run, wait)


def show_command(
    call: Call,
    run: Annotated[str, typer.Argument(help="The run's id, its beginning, or its last four digits.")],
    url: UrlOption = None,
    policy: PolicyOption = None,
    steps: Annotated[bool, typer.Option("--steps", help="Show every statement, its seconds and its rows.")] = False,
) -> None:
    """Show a run: what it did, how it ended, and with --steps every statement."""
    with opened(call, url, policy) as (_, catalog):
        if catalog.current() is None:
            raise PolicyError("No run is recorded here.")
        recorded = catalog.run(run)
        listed = catalog.steps(recorded.id) if steps else []
        releases = catalog.releases(recorded.id)
    if call.json:
        described = {**run_object(recorded), "releases": [asdict(release) for release in releases]}
        call.emit(described | ({"steps": [asdict(step) for step in listed]} if steps else {}))
        return
    print(_run_text(recorded))
    if steps:
        print("\n" + _steps_text(listed))


def _run_text(run: Run) -> str:
    lines = [
        f"Run {run.id}: {run.status.value}",
        f"  from {place_text(run.source)} to {place_text(run.release)}, {run.algorithm} on {run.engine_version}",
        f"  started {run.started:%Y-%m-%d %H:%M:%S} UTC"
        + (f", finished {run.finished:%Y-%m-%d %H:%M:%S} UTC" if run.finished else "")
        + f", sqlanon {run.sqlanon_version}",
    ]
    if run.error_class:
        lines.append(f"  {run.error_class}: {run.error_message}")
    if run.result is not None:
        release, metrics = run.result.release, run.result.metrics
        classes = f"{release.classes:,} {release.class_words[1]}"
        lines.append(
            f"  {quantity(release.rows, 'row')} in {classes} of {quantity(release.min_class_size, 'row')} or more;"
            f" C_AVG {number(metrics.c_avg)}" + ("" if metrics.gcp is None else f", GCP {number(metrics.gcp)}")
        )
        models = [(plans.spec_text({"model": m.model, **m.parameters}), m.satisfied) for m in run.result.models]
        lines += [f"  {model}: {'holds' if satisfied else 'violated'}" for model, satisfied in models]
    if run.method_result is not None:
        lines += ["", texts_of(run.method_result.algorithm).result_text(run.method_result)]
    return "\n".join([*lines, "", "Policy:", run.policy])


def _steps_text(steps: list[Step]) -> str:
    """The statements as a script, each with what it took."""
    return "\n\n".join(f"{step.comment(_cost_text(step))}\n{step.statement};" for step in steps)


def _cost_text(step: Step) -> str:
    rows = f", {quantity(step.row_count, 'row')}" if step.row_count is not None else ""
    return f", statement {step.number}, {number(round(step.seconds, 3))} s{rows}"


def gc_command(call: Call, url: UrlOption = None, policy: PolicyOption = None) -> None:
    """Clear what killed runs left: work tables, staged releases, spill directories. Living runs are left alone."""
    if policy is not None:
        with sessions.open_session(loading.load_policy(policy), call.options, makes_catalog=False) as session:
            done = workspace.gc(session.engine, session.catalog, call.options.temp_directory)
    else:
        with opened(call, url, None) as (engine, catalog):
            recorded = catalog.current() is not None
            directory = call.options.temp_directory
            done = workspace.gc(engine, catalog, directory) if recorded else workspace.remove_spill([engine], directory)
    if call.json:
        call.emit({"done": done})
    else:
        print("\n".join(done) if done else "Nothing to clear.")


def upgrade_command(
    call: Call,
    revision: Annotated[str, typer.Argument(help="The revision to reach.")] = "head",
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Create the catalog's tables, or bring them up to date.

    A run does so by itself; but it makes no catalog that its policy names where another one knows the source already.
    """
    with _catalog(call, url, policy, makes=True) as catalog:
        catalog.upgrade(revision)
        _tell_revision(call, catalog)


def downgrade_command(
    call: Call,
    revision: Annotated[
        str, typer.Argument(help="The revision; -- -1 undoes one, base removes all the catalog holds.")
    ],
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Take the catalog's tables back to an older revision; what newer ones hold is lost.

    It is refused while a run goes on, and if jobs would be lost that are scheduled: unschedule them first.
    """
    with _catalog(call, url, policy) as catalog:
        catalog.downgrade(revision)
        _tell_revision(call, catalog)


def current_command(call: Call, url: UrlOption = None, policy: PolicyOption = None) -> None:
    """Show the revision of the catalog's tables."""
    with _catalog(call, url, policy) as catalog:
        _tell_revision(call, catalog)


@contextlib.contextmanager
def _catalog(call: Call, url: str | None, policy: Path | None, *, makes: bool = False) -> Iterator[Catalog]:
    """The catalog with its tables as they are; makes: a DuckDB file that a policy names is made."""
    is_made = makes and policy is not None
    place = place_of(url, policy, makes=makes)
    with (
        connect(place.url, call.options, create=is_made) as engine,
        catalogs.Catalog(engine, engine, place) as catalog,
    ):
        if not makes:
            catalog.refuse_mistaken(place)
        yield catalog


def _tell_revision(call: Call, catalog: Catalog) -> None:
    revision = catalog.current()
    if call.json:
        call.emit({"revision": revision, "schema": catalog.location.schema})
    else:
        print(revision or "none")
