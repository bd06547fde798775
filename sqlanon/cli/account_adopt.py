"""account adopt: enter a release in the account of its people after it was published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import Call, Follow, Quiet
from sqlanon.cli.catalog import UrlOption, opened, place_of
from sqlanon.cli.deferred import adopting, loading, location
from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.rules import RunName

if TYPE_CHECKING:
    from sqlanon.catalog import Catalog
    from sqlanon.engines.base import Engine
    from sqlanon.runs.accounts.adopting import Adoption


def adopt_command(
    call: Call,
    run: RunName,
    policy: Annotated[
        Path | None,
        typer.Argument(
            help="A policy whose `subject`, `people` and `history.k` hold, if not those of the run.", show_default=False
        ),
    ] = None,
    url: UrlOption = None,
    progress: Follow = "auto",
    quiet: Quiet = False,
) -> None:
    """Enter a release in the account of its people that was published without one. Nothing is published.

    The run's rules make the release again, out of the same source. A source that has changed since is refused. A
    release that leaves too few persons is entered with a warning, as it is out already.
    """
    known = None if policy is None else loading.load_policy(policy)
    with opened(call, url, policy) as (engine, catalog):
        recorded, database = catalog.run(run), location.database_of(engine)
        place = place_of(url, policy)._replace(schema=catalog.location.schema)
    with progressing.observer(call, progress, quiet) as watching:
        adopted = adopting.adopt_run(recorded, place, database, known, options=call.options, observer=watching)
    if call.json:
        call.emit(adopted.as_json())
    else:
        print(_text(adopted))


def unentered(engine: Engine, catalog: Catalog, people: str) -> list[str]:
    """List the ids of published runs about people that are in no account, the newest first."""
    return [run.id for run in adopting.unentered_runs(engine, catalog, people)]


def _text(adopted: Adoption) -> str:
    """An adoption for people."""
    lines = [f"The release of run {adopted.run} is entered.", f"  {adopted.history.sentence}"]
    if adopted.problem is not None:
        lines.append(f"Warning: {adopted.problem} It is out already, so that it is entered nevertheless.")
    return "\n".join([*lines, adopting.SUBJECT_NOTE])
