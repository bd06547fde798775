"""rules and apply: the recoding function of a release, to look at and to use again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.call import Call, Follow, Panel, Quiet, Repair, command
from sqlanon.cli.catalog import PolicyOption, UrlOption, opened, place_of
from sqlanon.cli.deferred import applying, box_labels, export_sql, loading, store_rules, summary
from sqlanon.cli.deferred import catalog as catalogs
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import table
from sqlanon.cli.writing import give_exactly
from sqlanon.runs import OnViolation
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.catalog import Run
    from sqlanon.engines.base import Engine
    from sqlanon.releases.rules.store_rules import StoredRules

RunName = Annotated[str, typer.Argument(help="The run's id, its beginning, or its last four digits.")]
OnViolationOption = Annotated[
    OnViolation | None,
    typer.Option(
        "--on-violation",
        help="Rows that no rule knows, or whose class violates a model: suppress, or end with an error; if not given, "
        "suppress where the run's policy has a suppression budget, within that budget.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "rules", Panel.JOBS)(rules_command)
    command(app, "apply", Panel.JOBS, limits=True)(apply_command)


def rules_command(
    call: Call,
    run: RunName,
    url: UrlOption = None,
    policy: PolicyOption = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print one SELECT that recodes rows, to be owned by a DBA.")
    ] = False,
    source: Annotated[str | None, typer.Option(help="With --sql: the table it reads, if not that of the run.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many rules.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="After so many others.")] = 0,
) -> None:
    """Show how rows are recoded like those of a release: the rules, or one SELECT. Rules hold values of the data."""
    with opened(call, url, policy, upgrade=True) as (_, catalog):
        recorded = catalog.run(run)
        stored = store_rules.read_rules(catalog, recorded.id)
        if sql:
            text = export_sql.text_to_own(stored, export_sql.rules_select(catalog.store, stored, recorded, source))
            if call.json:
                call.emit({"run": recorded.id, "sql": text})
            else:
                give_exactly(text)
            return
        described = _described(recorded, stored, catalog.store, limit, offset)
    if call.json:
        call.emit(described)
    else:
        print(_text(described))


def _described(run: Run, stored: StoredRules, engine: Engine, limit: int, offset: int) -> dict[str, Any]:
    """The rules as programs read them."""
    names = [attribute.name for attribute in stored.attributes]
    described: dict[str, Any] = {"run": run.id, "kind": stored.record.kind.value, "quasi_identifiers": names}
    if stored.record.kind is catalogs.RulesKind.LEVELS:
        return described | {"passes": stored.content["passes"]}
    if stored.record.kind is catalogs.RulesKind.CUTS:
        replaced = box_labels.list_replaced(engine, stored)
        return described | {"replaced": [dict(zip(("name", "level", "group"), one, strict=True)) for one in replaced]}
    rules = box_labels.list_rules(engine, stored, limit, offset)
    listed = [{"rule": r.leaf, "rows": r.rows, "shows": dict(zip(names, r.cells, strict=True))} for r in rules]
    return described | {"rules": stored.record.leaves, "offset": offset, "listed": listed}


def _text(described: dict[str, Any]) -> str:
    names = described["quasi_identifiers"]
    if "passes" in described:
        rows = [[place, *one.values()] for place, one in enumerate(described["passes"], start=1)]
        return "Every value is shown at one level of its hierarchy.\n" + table(["pass", *names], rows)
    if "replaced" in described:
        groups = [list(one.values()) for one in described["replaced"]]
        return "A value is shown at its topmost group that is not among these.\n" + table(
            ["attribute", "level", "group"], groups
        )
    rows = [[one["rule"], one["rows"], *one["shows"].values()] for one in described["listed"]]
    first, last = described["offset"] + 1, described["offset"] + len(rows)
    return (
        table(["rule", "rows", *names], rows, indent="")
        + f"\n{first:,} to {last:,} of {quantity(described['rules'], 'rule')}"
    )


def apply_command(
    call: Call,
    run: RunName,
    to: Annotated[str, typer.Option("--to", metavar="TABLE|FILE", help="The new rows: a table, or a data file.")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="TABLE|FILE", help="Place of the recoded rows; if not given, of the run's release."
        ),
    ] = None,
    on_violation: OnViolationOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Allow an existing release to be replaced.")] = False,
    repair: Repair = False,
    url: UrlOption = None,
    policy: PolicyOption = None,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Recode new rows like those of a release, verify the result independently, and publish it.

    Exit code 3 if the rows of a class are too few or too alike, unless such classes are to be suppressed.
    """
    with opened(call, url, policy, upgrade=True) as (_, catalog):
        recorded = catalog.run(run)
        schema = catalog.location.schema
    known = None if policy is None else loading.load_policy(policy)
    place = (place_of(url, policy)[0], schema)
    application = applying.Application(recorded.id, to, out, on_violation, replace, repair=repair)
    with progressing.observer(call, progress, quiet) as watching:
        result = applying.apply_rules(application, recorded, place, known, options=call.options, observer=watching)
    result = result.with_command(call.began)
    with call.telling(result.run):
        if call.json:
            call.emit(result.as_json())
        else:
            print(summary.applied_text(result))
