"""hierarchy: look at generalization hierarchies, write them as files, record files in the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli.call import Call, Panel, PolicyFile, command, expanded
from sqlanon.cli.catalog import opened
from sqlanon.cli.deferred import connecting, hierarchies, loading
from sqlanon.cli.layout import table
from sqlanon.cli.writing import STDOUT
from sqlanon.errors import AccessError, PolicyError
from sqlanon.support.quantities import quantity
from sqlanon.support.suggest import did_you_mean

if TYPE_CHECKING:
    from sqlanon.catalog import Catalog, HierarchyRecord
    from sqlanon.hierarchies import HierarchySummary
    from sqlanon.policy import Policy

Attribute = Annotated[str, typer.Argument(help="The attribute whose hierarchy is meant.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Generalization hierarchies.", no_args_is_help=True)
    command(group, "show", limits=True)(show_command)
    command(group, "missing", as_json=False, limits=True)(missing_command)
    command(group, "export", as_json=False, limits=True)(export_command)
    command(group, "import")(import_command)
    command(group, "list")(list_command)
    app.add_typer(group, name="hierarchy", rich_help_panel=Panel.CHOICE)


def show_command(
    call: Call,
    policy: PolicyFile,
    attribute: Attribute,
    labels: Annotated[int, typer.Option(min=1, help="At most so many labels a level.")] = 8,
) -> None:
    """Build an attribute's hierarchy from its values, and show its levels: how many groups, and some labels."""
    loaded = loading.load_policy(policy)
    spec = {attribute: _spec(loaded, attribute)}
    with (
        connecting.open_source(loaded, call.options) as (engine, source),
        hierarchies.scratch_hierarchies(engine, source, spec) as built,
    ):
        summary = hierarchies.show(engine, built[attribute], labels)
    if call.json:
        call.emit({"attribute": attribute, "kind": spec[attribute].kind, **asdict(summary)})
    else:
        print(_text(attribute, spec[attribute].kind, summary))


def _spec(policy: Policy, attribute: str) -> Any:
    if attribute not in policy.attributes:
        raise PolicyError(f"The policy has no attribute '{attribute}'; {did_you_mean(attribute, policy.attributes)}")
    spec = policy.attributes[attribute].hierarchy
    if spec is None:
        having = [name for name, known in policy.attributes.items() if known.hierarchy is not None]
        others = f"; those with one: {', '.join(having)}." if having else "."
        raise PolicyError(f"'{attribute}' has no hierarchy{others}")
    return spec


def _text(attribute: str, kind: str, summary: HierarchySummary) -> str:
    rows = [[level.level, level.groups, _labels(level.labels, level.groups)] for level in summary.levels]
    head = f"{attribute} ({kind}): {quantity(summary.leaves, 'value')}, {quantity(summary.height, 'level')} above them"
    return head + "\n" + table(["level", "groups", "labels"], rows)


def _labels(labels: tuple[str, ...], groups: int) -> str:
    return ", ".join(labels) + (", …" if groups > len(labels) else "")


def export_command(
    call: Call,
    policy: Annotated[
        str, typer.Argument(metavar="POLICY|URL", help="A policy, or a database whose catalog is meant.")
    ],
    attribute: Annotated[str, typer.Argument(metavar="ATTRIBUTE|NAME", help="The attribute, or the recorded name.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here; by default, and with -, to stdout.")
    ] = None,
) -> None:
    """Write a hierarchy as lines `value;level 1;...;*`, the format that ARX reads and writes.

    It holds every value of the attribute, from the policy's table or as it was imported: treat it like the data.
    """
    if "://" in expanded(policy):
        with opened(call, policy, None) as (_, catalog):
            lines = hierarchies.recorded_lines(_recorded(catalog, attribute))
        _write(lines, output)
        return
    loaded = loading.load_policy(Path(policy))
    spec = {attribute: _spec(loaded, attribute)}
    with (
        connecting.open_source(loaded, call.options) as (engine, source),
        hierarchies.scratch_hierarchies(engine, source, spec) as built,
    ):
        _write(hierarchies.export_csv(engine, built[attribute]), output)


def missing_command(
    call: Call,
    policy: PolicyFile,
    attribute: Attribute,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here; by default, and with -, to stdout.")
    ] = None,
) -> None:
    """Write the values that a csv or mapping lacks, as lines `value;;...;*` to complete and add to it.

    They are values of the policy's table: treat them like the data.
    """
    loaded = loading.load_policy(policy)
    _spec(loaded, attribute)
    with connecting.open_source(loaded, call.options) as (engine, source):
        _write(hierarchies.missing_lines(engine, source, attribute, loaded.attributes[attribute]), output)


def _recorded(catalog: Catalog, name: str) -> HierarchyRecord:
    """The recorded hierarchy of that name whose values were recorded with it."""
    records = catalog.hierarchies() if catalog.current() is not None else []
    known = {record.name: record for record in records if hierarchies.kind_of(record) == "mapping"}
    if name not in known:
        hint = did_you_mean(name, known) or "none was imported."
        raise PolicyError(f"The catalog holds no values of a hierarchy '{name}'; {hint}")
    return known[name]


def _write(lines: Iterator[str], output: Path | None) -> None:
    if output is None or str(output) == STDOUT:
        for line in lines:
            print(line, end="")
        return
    try:
        with output.open("w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
    except OSError as error:
        raise AccessError(f"{output} can't be written: {error.strerror}.") from None


def import_command(
    call: Call,
    url: Annotated[str, typer.Argument(help="The database whose catalog keeps it; ${NAME} is expanded.")],
    name: Annotated[str, typer.Argument(help="The name it is kept under.")],
    file: Annotated[Path, typer.Argument(help="Lines `value;level 1;...;*`, as ARX writes them.")],
) -> None:
    """Check a hierarchy's file (same depth everywhere, levels that nest) and record it in the catalog."""
    record = hierarchies.read_hierarchy(name, file)
    with opened(call, url, None, upgrade=True) as (_, catalog):
        for other in catalog.hierarchies():
            if other.name == name and other.digest != record.digest and hierarchies.kind_of(other) == "mapping":
                raise PolicyError(f"The catalog has another hierarchy '{name}'; choose another name.")
        catalog.record_hierarchy(record)
    if call.json:
        call.emit(_object(record))
    else:
        print(f"Recorded {name}: {quantity(record.leaves, 'value')}, {quantity(record.height, 'level')} above them.")


def list_command(call: Call, url: Annotated[str, typer.Argument(help="The database whose catalog is meant.")]) -> None:
    """List the hierarchies that the catalog holds: those of runs, and imported ones."""
    with opened(call, url, None) as (_, catalog):
        records = catalog.hierarchies() if catalog.current() is not None else []
    if call.json:
        call.emit({"hierarchies": [_object(record) for record in records]})
    elif records:
        print(
            table(
                ["name", "values", "levels", "digest"], [[r.name, r.leaves, r.height, r.digest[:12]] for r in records]
            )
        )
    else:
        call.note("No hierarchy is recorded here.")


def _object(record: HierarchyRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "kind": hierarchies.kind_of(record),
        "digest": record.digest,
        "values": record.leaves,
        "height": record.height,
    }
