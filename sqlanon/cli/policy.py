"""init, check, run: from a table to a policy, and from a policy to a release."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from sqlanon.cli import several_tables
from sqlanon.cli.call import HERE, Call, Follow, Panel, PolicyFile, Quiet, Repair, TrustOwner, command, expanded
from sqlanon.cli.deferred import calls as api
from sqlanon.cli.deferred import (
    connecting,
    dialects,
    linking,
    loading,
    plans,
    resuming,
    sample,
    sources,
    summary,
)
from sqlanon.cli.deferred import dry_run as dry
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.deferred import search_options as options_of_search
from sqlanon.cli.levels import AnySize, TimeLimit, parse_levels
from sqlanon.cli.release_texts import texts_of_policy
from sqlanon.cli.writing import STDOUT, give_exactly, quoted, write
from sqlanon.errors import PolicyError, SqlanonError

if TYPE_CHECKING:
    from sqlanon.algorithms.search_options import SearchOptions
    from sqlanon.inquiries.profile.costs import DraftCosts
    from sqlanon.inquiries.profile.draft import Draft
    from sqlanon.inquiries.profile.schema_draft import SchemaDraft
    from sqlanon.policy import Policy
    from sqlanon.results.run_result import RunResult

Replace = Annotated[bool, typer.Option("--replace", help="Allow an existing release to be replaced.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "init", Panel.RELEASE, limits=True)(init_command)
    command(app, "check", Panel.RELEASE, limits=True)(check_command)
    command(app, "run", Panel.RELEASE, limits=True)(run_command)


def init_command(
    call: Call,
    url: Annotated[
        str,
        typer.Argument(help="The database, or a file (see `source.file`); - is standard input. ${NAME} is expanded."),
    ],
    table: Annotated[
        str | None, typer.Argument(help="The table, as SQL writes it, or a file that Spark reads; none for a file.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", help="Draft one policy for all tables of this schema, by its exact name.")
    ] = None,
    people: Annotated[
        str | None, typer.Option("--people", help="With --schema: the table that has one row a person.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the policy here; by default, and with -, to stdout.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file.")] = False,
    trying: Annotated[
        bool,
        typer.Option("--try/--no-try", help="Search a sample by the draft, and say what each part of it costs."),
    ] = True,
    trust_owner: TrustOwner = False,
    encoding: Annotated[str | None, _of_file("Its encoding, such as latin-1; utf-8 by default.")] = None,
    delimiter: Annotated[str | None, _of_file("Its delimiter of fields: a character, or tab.")] = None,
    null: Annotated[list[str] | None, _of_file("A field that stands for NULL; may be repeated.")] = None,
    dates: Annotated[list[str] | None, _of_file("A format of its dates, such as %d/%m/%Y; may be repeated.")] = None,
    header: Annotated[
        bool | None, _of_file("Whether its first line holds names of columns, or data.", "--header/--no-header")
    ] = None,
    names: Annotated[str | None, _of_file("The names of its columns, divided by commas.")] = None,
    decimal: Annotated[str | None, _of_file("The decimal mark of its numbers: a point or a comma.")] = None,
    thousands: Annotated[str | None, _of_file("The mark between groups of three digits.")] = None,
) -> None:
    """Profile a table and draft a policy for it.

    Every column is listed with a proposed role and the facts it rests on. Look at each before you run the policy.

    The draft is tried on a sample, in temporary tables: beside each column and model stands what it costs.
    """
    source = expanded(url)
    output = None if output is None or str(output) == STDOUT else output
    if output is not None and output.exists() and not force:
        raise PolicyError(f"{output} exists; choose another name, or allow it to be overwritten (--force).")
    if schema is not None or people is not None:
        _give(call, output, several_tables.draft(call, source, table, schema, people, trusts_owner=trust_owner))
        return
    given = {"encoding": encoding, "delimiter": delimiter, "null": null, "dates": dates, "header": header}
    given |= {"names": None if names is None else _split(names), "decimal": decimal, "thousands": thousands}
    reading = {name: value for name, value in given.items() if value is not None and value != []}
    drafted = _draft(source, table, output, reading, trying, trust_owner, call)
    notes = [*drafted.shown, *([] if drafted.costs is None else [_costs_text(drafted.costs)])]
    _give(call, output, drafted, notes)


def _give(call: Call, output: Path | None, drafted: Draft | SchemaDraft, notes: Sequence[str] = ()) -> None:
    """Write a draft to its file, or print it, and say what is to be known of it."""
    if output is not None:
        write(output, drafted.text)
    if call.json:
        call.emit(drafted.as_json())
    elif output is None:
        give_exactly(drafted.text)
    for sentence in notes:
        call.note(sentence)
    if output is not None:
        call.note(f"Wrote {output}. Look at every role in it, then run: sqlanon check {quoted(output)}")


def _costs_text(costs: DraftCosts) -> str:
    if costs.draft is None:
        return f"The draft could not be tried: {costs.problem}"
    return (
        f"Tried on a sample of {costs.rows:,} rows in {costs.seconds:.1f} s; what its parts cost stands in the draft."
    )


def _of_file(help: str, *flags: str) -> Any:
    """An option that says how a file is read."""
    return typer.Option(*flags, help=help, rich_help_panel="How a file is read")


def _split(names: str) -> list[str]:
    """Names that are divided by commas; one with a comma is in quotes, as in a line of CSV."""
    return next(csv.reader([names]), [])


def _draft(
    source: str,
    table: str | None,
    output: Path | None,
    reading: dict[str, Any],
    trying: bool,
    trusts_owner: bool,
    call: Call,
) -> Draft:
    url = source if "://" in source else None
    if url is None and table is not None:
        raise PolicyError("A file holds one table; leave TABLE out, or give a database as a URL (scheme://...).")
    if url is not None and dialects.dialect_of_url(url) and table is None:
        raise PolicyError("A table is missing: sqlanon init URL TABLE.")
    table = table or source
    if not connecting.names_file(url, table):
        if reading:
            raise PolicyError(f"--{min(reading)} is about a file; a table has its types.")
        return api.draft(url, table, call.options, trying=trying, trusts_owner=trusts_owner)
    if trusts_owner:
        raise PolicyError("--trust-owner is about a table of PostgreSQL; a file runs nobody's code.")
    directory = output.parent if output is not None else Path()
    options = loading.parse_source({"file": table, **reading}).reading
    return api.draft(url, table, call.options, relative_to=directory, reading=options, trying=trying)


def check_command(
    call: Call,
    policy: PolicyFile = HERE,
    sql: Annotated[bool, typer.Option("--sql", help="Print the plan and all that a run would do.")] = False,
    replace: Replace = False,
) -> None:
    """Check a policy against its table, and list every problem at once. Nothing is changed.

    It also tells where a run would be refused for an earlier release of the table.
    """
    if (tables := several_tables.load(policy, {"--sql": sql})) is not None:
        several_tables.tell_check(call, tables, policy, replace=replace)
        return
    loaded = loading.load_policy(policy)
    texts = texts_of_policy(loaded)
    if texts is not None:
        texts.refuse(loaded, {"--sql": sql and not texts.runs_dry})
    if sql:
        _print_dry_run(call, loaded, replace, options_of_search.SearchOptions())
        return
    if texts is not None:
        refusal = texts.tell_check(call, loaded)
        if not call.json:
            call.note(_next_of_check(policy, refusal))
        return
    tell_missing = None if call.json else _tell_missing
    plan, refusal = linking.check_run(loaded, replace=replace, options=call.options, tell_missing=tell_missing)
    if call.json:
        refusals = [] if refusal is None else [f"A run would be refused: {refusal}"]
        call.emit({**plan.as_json(), "warnings": [*plan.warnings, *refusals]})
        return
    print(plans.plan_text(plan))
    call.note(_next_of_check(policy, refusal))


def _tell_missing(column: str, values: Sequence[str]) -> None:
    """List values that a hierarchy lacks, on the terminal of who may read the source; errors count them."""
    print(f"The hierarchy of '{column}' lacks {', '.join(map(repr, values))}")


def _next_of_check(policy: Path, refusal: str | None) -> str:
    if refusal is None:
        return f"No problem found. Next: sqlanon run {quoted(policy)}"
    return f"The policy fits its table, but a run would be refused: {refusal}"


def run_command(
    call: Call,
    policy: PolicyFile = HERE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and all that a run would do; change nothing.")
    ] = False,
    replace: Replace = False,
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=LEVEL,...",
            help="Release this generalization: a level of each quasi-identifier.",
        ),
    ] = None,
    time_limit: TimeLimit = None,
    any_size: AnySize = False,
    repair: Repair = False,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Go on where this run was stopped, as far as nothing has changed since."),
    ] = None,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Anonymize the table, verify the release independently, and publish it. If anything fails, nothing changes."""
    unfit = {"--dry-run": dry_run, "--levels": levels, "--time-limit": time_limit, "--any-size": any_size}
    unfit |= {"--resume": resume, "--repair": repair}
    if (tables := several_tables.load(policy, unfit)) is not None:
        several_tables.tell_run(call, tables, replace=replace, progress=progress, quiet=quiet)
        return
    loaded = loading.load_policy(policy)
    texts = texts_of_policy(loaded)
    if texts is not None:
        texts.refuse(loaded, unfit | {"--dry-run": dry_run and not texts.runs_dry})
    if texts is not None and not dry_run:
        texts.tell_run(call, loaded, replace=replace, progress=progress, quiet=quiet)
        return
    search_options = options_of_search.SearchOptions(
        None if levels is None else parse_levels(levels), time_limit, any_size
    )
    for other, given in {"--dry-run": dry_run, "--resume": resume is not None}.items():
        if repair and given:
            raise PolicyError(f"--repair does not go with {other}: classes are merged in a run from its beginning.")
    if dry_run:
        if resume is not None:
            raise PolicyError("--dry-run does not go with --resume: what can be used again shows in the run alone.")
        _print_dry_run(call, loaded, replace, search_options)
        return
    with progressing.observer(call, progress, quiet) as watching:
        common = {"replace": replace, "options": call.options, "observer": watching, **vars(search_options)}
        if resume is None:
            result = sources.run(loaded, repair=repair, **common)
        else:
            result = resuming.resume_run(resume, loaded, **common)
    result = cast("RunResult", result).with_command(call.began)
    with call.telling(result.run):
        if call.json:
            call.emit(result.as_json())
        else:
            _tell(call, loaded, result, policy)


def _tell(call: Call, loaded: Policy, result: RunResult, policy: Path) -> None:
    """Print the result of a run, for people."""
    print(summary.result_text(result, loaded))
    try:
        print("\n" + summary.comparison_text(sample.compare(loaded, result, call.options)))
    except SqlanonError as error:
        call.note(f"The release is published; a sample of it could not be read: {error}")
    print("\n" + summary.next_text(result.run, os.fspath(policy), loaded))


def _print_dry_run(call: Call, policy: Policy, replace: bool, search_options: SearchOptions) -> None:
    """The plan and what a run would do: as a script with comments, or as one object."""
    printed = dry.run_dry(policy, call.options, replace, search_options)
    if call.json:
        steps = [{"phase": s.phase, "name": s.name, "statement": s.statement} for s in printed.steps]
        call.emit({**printed.plan.as_json(), "statements": steps})
        return
    for line in (*plans.plan_text(printed.plan).splitlines(), "", *dry.HEAD):
        print(f"-- {line}".rstrip())
    for line in dry.script_lines(printed.steps):
        print(line)
