"""export: a recoding as SQL to own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sqlanon.cli.call import Call, Panel, command
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened
from sqlanon.cli.deferred import export_sql, freezing, project, sql, store_rules
from sqlanon.cli.rules import OnViolationOption, RunName
from sqlanon.cli.writing import give_exactly
from sqlanon.errors import PolicyError
from sqlanon.runs import OnViolation

if TYPE_CHECKING:
    from sqlanon.catalog import Catalog, Run
    from sqlanon.engines.base import Engine
    from sqlanon.jobs.freezing import Freezing

Form = Literal["sql", "view", "procedure", "dbt", "labels"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "export", Panel.JOBS)(export_command)


def export_command(
    call: Call,
    run: RunName,
    form: Annotated[
        Form,
        typer.Option(
            "--as",
            help="A SELECT, a view of it, a procedure that checks and publishes too, a dbt project; or a view of the "
            "release with the ends of its labels as numbers and dates.",
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="The name of the view, of the procedure's job, or of the dbt model.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="With sql, view and dbt: the table to read, if not the run's; with labels: the release."),
    ] = None,
    source_model: Annotated[
        str | None,
        typer.Option(
            "--source-model",
            metavar="MODEL",
            help="With dbt: a model of the project to read by ref(), as MODEL or PACKAGE.MODEL; the table is its like.",
        ),
    ] = None,
    on_violation: OnViolationOption = None,
    budget: Annotated[
        float | None, typer.Option(min=0, max=1, help="With suppress: the largest share of rows that may be.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With dbt: the directory of the project; it is made.")
    ] = None,
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Print the recoding of a run as SQL that a DBA can own; nothing is changed. It holds values of the data, but for
    labels.

    With dbt, models and tests are written into a project.
    """
    _refuse(form, name, (source, source_model), on_violation is not None or budget is not None, output)
    if form == "dbt":
        assert name is not None
        assert output is not None
        wanted = freezing.Freezing(name, on_violation, budget)
        _export_dbt(call, run, wanted, (source, source_model), output, (url, policy))
        return
    with opened(call, url, policy, upgrade=True) as (engine, catalog):
        recorded = catalog.run(run)
        freezing.require_form(catalog, recorded.id, form)
        text = _text(engine, catalog, recorded, form, name, source, (on_violation, budget))
    if call.json:
        call.emit({"run": recorded.id, "as": form, "sql": text})
    else:
        give_exactly(text + ";")


def _text(
    engine: Engine,
    catalog: Catalog,
    recorded: Run,
    form: Form,
    name: str | None,
    source: str | None,
    limits: tuple[OnViolation | None, float | None],
) -> str:
    """Write the recoding in a form other than dbt."""
    if form == "procedure":
        assert name is not None
        return freezing.export_procedure(engine, catalog, recorded, freezing.Freezing(name, *limits))
    stored = store_rules.read_rules(catalog, recorded.id)
    if form == "labels":
        assert name is not None
        return export_sql.labels_view(engine, stored, recorded, name, source)
    text = export_sql.rules_select(catalog.store, stored, recorded, source)
    if form == "view":
        assert name is not None
        text = f"CREATE VIEW {engine.traits.stored(sql.Relation.parse(name))} AS\n{text}"
    return export_sql.text_to_own(stored, text)


def _export_dbt(
    call: Call,
    run: str,
    wanted: Freezing,
    sources: tuple[str | None, str | None],
    output: Path,
    place: tuple[str | None, Path | None],
) -> None:
    with opened(call, *place, upgrade=True) as (engine, catalog):
        recorded = catalog.run(run)
        freezing.require_form(catalog, recorded.id, "dbt")
        with freezing.session_of_source(engine, catalog, recorded, call.options) as session:
            files = project.project_files(session, catalog, recorded, wanted, *sources)
    written = project.write_project(output, wanted.name, files)
    if call.json:
        call.emit({"run": recorded.id, "as": "dbt", "files": [str(path) for path in written]})
    else:
        print("\n".join(str(path) for path in written))


def _refuse(
    form: Form, name: str | None, sources: tuple[str | None, str | None], choice: bool, output: Path | None
) -> None:
    """Refuse options that would have no effect, and forms without a name; sources: a table, and a model of dbt."""
    wrong = []
    source, model = sources
    if form != "dbt" and model is not None:
        wrong.append("--source-model is for --as dbt.")
    if form == "sql" and name is not None:
        wrong.append("--name is for --as view, procedure, dbt and labels.")
    if form != "sql" and name is None:
        wrong.append(f"--as {form} needs --name.")
    if form == "procedure" and source is not None:
        wrong.append("--source is for --as sql, view, dbt and labels.")
    if form not in ("procedure", "dbt") and choice:
        wrong.append("--on-violation and --budget are for --as procedure and dbt.")
    if (form == "dbt") != (output is not None):
        wrong.append("--as dbt needs --output, the directory of the project; the others are printed.")
    if wrong:
        raise PolicyError(wrong)
