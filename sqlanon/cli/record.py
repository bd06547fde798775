"""record: the record of a run as one document, to be signed and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sqlanon.cli.call import Call, command
from sqlanon.cli.catalog import PolicyOption, UrlOption, place_of
from sqlanon.cli.lattice import require_writable, write
from sqlanon.cli.rules import RunName
from sqlanon.reading import open_recorded
from sqlanon.signoff.record import make_record


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "record", as_json=False)(record_command)


def record_command(
    call: Call,
    run: RunName,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the record here instead of to stdout.")
    ] = None,
    url: UrlOption = None,
    policy: PolicyOption = None,
) -> None:
    """Write the record of a run: policy, versions, digests of hierarchies, recoding and release, what was checked.

    It is one JSON document, made from the catalog. `sqlanon verify --record` holds the release against it later.
    """
    if output is not None:
        require_writable(output)
    with open_recorded(place_of(url, policy), call.options) as catalog:
        document = make_record(catalog, catalog.run(run))
    text = json.dumps(document, ensure_ascii=False, indent=2)
    if output is None:
        print(text)
        return
    write(output, text + "\n")
    call.note(f"Wrote {output}.")
