"""record: the record of a run as one document, to be signed and kept; and what holding its release against it tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import Call, Panel, command, expanded
from sqlanon.cli.catalog import PolicyOption, UrlOption
from sqlanon.cli.deferred import check, loading, queries, summary
from sqlanon.cli.rules import RunName
from sqlanon.cli.writing import give, require_writable
from sqlanon.errors import ProtectionError

if TYPE_CHECKING:
    from sqlanon.report.run_record.check import RecordCheck


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "record", Panel.HISTORY, as_json=False, limits=True)(record_command)


def record_command(
    call: Call,
    run: RunName,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the record here; by default, and with -, to stdout.")
    ] = None,
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Write the record of a run: policy, versions, digests of hierarchies, recoding and release, what was checked.

    It is one JSON document. `sqlanon verify --record` holds the release against it later. With `digest: run` in the
    policy it tells of the release as it was published, otherwise as it is now.
    """
    require_writable(output)
    place = {"url": expanded(url)} if policy is None and url is not None else {}
    document = queries.run_record(
        run, policy=None if policy is None else loading.load_policy(policy), options=call.options, **place
    )
    text = json.dumps(document, ensure_ascii=False, indent=2)
    give(call, output, text + "\n")


def _url(place: str | None) -> str | None:
    """The URL that a policy, or the command line itself, gives for the release."""
    if place is None or "://" in (place := expanded(place)):
        return place
    policy = loading.load_policy(Path(place))
    return policy.release.url or policy.source.url


def tell_record(call: Call, record: Path, place: str | None, table: str | None) -> int:
    """Hold a release against its record and print what was found; the exit code. `place` is a policy or a URL."""
    result = check.check_record(check.read_record(record), url=_url(place), table=table, options=call.options)
    if call.json:
        call.emit(result.as_json())
    else:
        print(record_text(result))
    return 0 if result.satisfied else ProtectionError.exit_code


def record_text(check: RecordCheck) -> str:
    """The check of a record, for people."""
    if not check.intact:
        return f"The record was altered since it was written. {check.note} Nothing in it can be relied on."
    lines = [f"The record of run {check.run} is as it was written."]
    if check.digest is not None:
        lines += [
            f"{table} has been changed since it was recorded."
            if table in check.changed
            else f"{table} is as it was recorded."
            for table in check.tables
        ]
    if check.verification is not None:
        lines.append(summary.verification_text(check.verification, check.release))
    elif check.note:
        lines.append(check.note)
    return "\n".join(lines)
