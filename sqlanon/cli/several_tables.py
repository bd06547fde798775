"""check, run and verify for a policy of several tables: each table is told of in the words of a single one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlanon.cli.deferred import calls as api
from sqlanon.cli.deferred import dividing, plans, risk_text, summary, together, verifying
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.layout import percent
from sqlanon.cli.release_texts import texts_of_policy
from sqlanon.cli.writing import quoted
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.results.run_result import RunResult
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.cli.call import Call
    from sqlanon.inquiries.profile.schema_draft import SchemaDraft
    from sqlanon.policy.tables import TablePart, Tables


def load(path: Path, unfit: Mapping[str, object]) -> Tables | None:
    """Read a policy of several tables; None where it is one of a single table.

    unfit: options that have no meaning for several tables, which are refused.
    """
    tables: Tables | None = dividing.load_tables(path)
    given = [name for name, value in unfit.items() if value]
    if tables is not None and given:
        raise PolicyError(f"{', '.join(given)} does not go with a policy of several tables; leave it out.")
    return tables


def draft(
    call: Call, source: str, table: str | None, schema: str | None, people: str | None, *, trusts_owner: bool
) -> SchemaDraft:
    """Draft one policy for the tables of a schema."""
    if schema is None:
        raise PolicyError("--people goes with --schema, which names the schema of the tables.")
    if table is not None or "://" not in source:
        raise PolicyError("--schema goes with the URL of a database alone: sqlanon init URL --schema NAME.")
    drafted: SchemaDraft = api.draft_schema(source, schema, people, call.options, trusts_owner=trusts_owner)
    return drafted


def tell_check(call: Call, tables: Tables, policy: Path, *, replace: bool) -> None:
    """Check each table against the database, and print what comes of it."""
    checked, refused = together.check_tables(tables, replace=replace, options=call.options)
    if call.json:
        call.emit({"tables": {name: one.as_json() for name, one in checked.items()}, "refusals": refused})
        return
    for name, one in checked.items():
        print(f"{_heading(tables.part(name))}\n{_check_text(tables.part(name), one)}\n")
    call.note(f"A run would be refused: {'; '.join(refused)}" if refused else _next(policy))


def _next(policy: Path) -> str:
    return f"No problem found. Next: sqlanon run {quoted(policy)}"


def _heading(part: TablePart) -> str:
    about = "people" if part.is_people else "about people" if part.person is not None else "about no person"
    return f"{part.name} ({about})"


def _check_text(part: TablePart, checked: Any) -> str:
    texts = texts_of_policy(part.policy)
    return str(plans.plan_text(checked) if texts is None else texts.check_text(checked))


def tell_run(call: Call, tables: Tables, *, replace: bool, progress: str, quiet: bool) -> None:
    """Release all tables, and print the result of each."""
    with progressing.observer(call, progress, quiet) as watching:
        results = together.run_tables(tables, replace=replace, options=call.options, observer=watching)
    with call.telling(next(iter(results.values())).run):
        if call.json:
            call.emit({"tables": {name: one.as_json() for name, one in results.items()}})
            return
        for name, result in results.items():
            print(f"{_heading(tables.part(name))}\n{_result_text(tables.part(name), result)}\n")
        print(f"{quantity(len(results), 'table')} were published together.")


def _result_text(part: TablePart, result: Any) -> str:
    texts = texts_of_policy(part.policy)
    if texts is not None and not isinstance(result, RunResult):
        return texts.result_text(result)
    return str(summary.result_text(result, part.policy))


def tell_risk(call: Call, tables: Tables) -> None:
    """Tell how surely persons could be picked, by whoever joins the tables: of the source, and of the release."""
    measured = {"source": verifying.measure_sources(tables, call.options)}
    try:
        released = verifying.verify_tables(tables, call.options)
        measured["release"] = {name: one.verification for name, one in released.items()}
    except PolicyError as error:
        call.note(f"The release could not be measured: {error}")
    if call.json:
        call.emit({of: {name: one.as_json() for name, one in each.items()} for of, each in measured.items()})
        return
    for name in measured["source"]:
        print(name)
        for of, each in measured.items():
            print(f"  {of}: {_risk_text(each[name])}")


def _risk_text(one: Any) -> str:
    known = "" if one.persons is None else f"; known by {risk_text.singled_text(one.persons.singled)}"
    greatest, mean = (percent(risk) for risk in (one.statistics.prosecutor_max, one.statistics.prosecutor_mean))
    return f"greatest {greatest}, mean {mean}{known}"


def tell_verify(call: Call, tables: Tables) -> int:
    """Check the released tables as somebody sees them who joins them; the exit code."""
    verified = verifying.verify_tables(tables, call.options)
    satisfied = verifying.all_satisfied(verified)
    if call.json:
        listed = {name: one.as_json() for name, one in verified.items()}
        call.emit({"tables": listed, "satisfied": satisfied})
    else:
        for name, one in verified.items():
            print(f"{summary.verification_text(one.verification, name)}")
            if one.astray:
                print(f"  Rows that refer to rows that are not released, or to several persons: {one.astray:,}.")
            print()
    return 0 if satisfied else ProtectionError.exit_code
