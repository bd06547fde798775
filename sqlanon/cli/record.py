"""record: the record of a run as one document, to be signed and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sqlanon.cli.call import Call, command, expanded
from sqlanon.cli.catalog import PolicyOption, UrlOption
from sqlanon.cli.lattice import require_writable, write
from sqlanon.cli.rules import RunName
from sqlanon.policy_reader import load_policy
from sqlanon.reading import run_record


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

    It is one JSON document. `sqlanon verify --record` holds the release against it later. With `digest: run` in the
    policy it tells of the release as it was published, otherwise as it is now.
    """
    if output is not None:
        require_writable(output)
    place = {"url": expanded(url)} if policy is None and url is not None else {}
    document = run_record(run, policy=None if policy is None else load_policy(policy), options=call.options, **place)
    text = json.dumps(document, ensure_ascii=False, indent=2)
    if output is None:
        print(text)
        return
    write(output, text + "\n")
    call.note(f"Wrote {output}.")
