"""risk: how surely rows of a table, or persons, could be picked by their quasi-identifiers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlanon.cli import several_tables
from sqlanon.cli.call import (
    HERE,
    About,
    Call,
    Header,
    OtherTable,
    Panel,
    TrustOwner,
    command,
    expanded,
    listed,
    policy_here,
    reading_by,
)
from sqlanon.cli.deferred import files, loading, risk, risk_page, risk_text
from sqlanon.cli.writing import require_writable, write
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.results.risk import PolicyRisk, TableRisk

_Qi = Annotated[
    list[str] | None,
    typer.Option(help="Quasi-identifiers, separated by commas; repeat it for names with commas."),
]
_Subject = Annotated[
    str | None, typer.Option(help="The column that tells whose each row is: persons are counted, not rows.")
]
_SampleOf = Annotated[
    float | None,
    typer.Option(help="Fraction of a population that the table is a random sample of, such as 0.02."),
]
_Weights = Annotated[
    str | None, typer.Option(help="The column that says for how many of the population each row stands.")
]
_Household = Annotated[
    str | None, typer.Option(help="The column that tells households apart: who knows one of them knows all.")
]
_Population = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="URL TABLE",
        help="URL and TABLE of all who could be in this one; - is the URL of the same database. After a file: - FILE.",
    ),
]
_Threshold = Annotated[
    list[float] | None, typer.Option(help="A risk above which members count as at risk, such as 0.2; may be repeated.")
]
_Subsets = Annotated[
    int | None, typer.Option(min=1, help="Measure distinction and separation of all subsets of up to so many columns.")
]
_Suda = Annotated[
    int | None, typer.Option(min=1, help="Count and score minimal sample uniques (SUDA) of up to so many columns.")
]
_RowsTo = Annotated[
    str | None,
    typer.Option(metavar="TABLE", help="Write each row's risk into this new table, beside its --key; for you alone."),
]
_Key = Annotated[str | None, typer.Option(help="The column that tells rows apart in that table.")]
_SPELLED = {
    "rows_to": "--rows-to",
    "reading": "--header",
    "population_reading": "--population-header",
    "trusts_owner": "--trust-owner",
}  # options that the call in Python names otherwise
_Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a page of the figures, to look at and to print.")
]
_PopulationHeader = Annotated[
    bool | None,
    typer.Option(
        "--population-header/--no-population-header",
        help="The same of the first line of the population's file.",
        rich_help_panel="How a file is read",
    ),
]
SAME = "-"  # in place of a URL: that of the table


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "risk", Panel.CHOICE, limits=True)(risk_command)


def risk_command(
    call: Call,
    policy: About = None,
    other: OtherTable = None,
    qi: _Qi = None,
    subject: _Subject = None,
    sample_of: _SampleOf = None,
    weights: _Weights = None,
    household: _Household = None,
    population: _Population = None,
    threshold: _Threshold = None,
    subsets: _Subsets = None,
    suda: _Suda = None,
    rows_to: _RowsTo = None,
    key: _Key = None,
    html: _Html = None,
    header: Header = None,
    population_header: _PopulationHeader = None,
    trust_owner: TrustOwner = False,
) -> None:
    """Measure how surely rows of a table, or persons, could be picked by their quasi-identifiers. Nothing is changed,
    but for the table that --rows-to names.

    With a policy: of its source, and of its release if one is published. docs/risk.md says what the measures mean.
    """
    if policy is None and (here := policy_here()) is not None:
        policy = str(here)
    if policy is None:
        raise PolicyError(f"Which table? Give a policy (there is no {HERE} here), a URL and a table, or a data file.")
    require_writable(html)
    place = expanded(policy)
    more: dict[str, Any] = {"sample_of": sample_of, "subsets": subsets, "suda": suda, "options": call.options}
    if threshold:
        more["thresholds"] = tuple(threshold)
    of_table: dict[str, Any] = {
        "subject": subject,
        "weights": weights,
        "household": household,
        "population": population,
        "rows_to": rows_to,
        "key": key,
        "reading": reading_by(header),
        "population_reading": reading_by(population_header),
        "trusts_owner": trust_owner or None,
    }
    if "://" in place or files.is_data_file(place):
        of_table |= _population_place(population, place) | {"trusts_owner": trust_owner}
        _measure_table(call, place, other, qi or [], html, of_table | more)
    else:
        _refuse({"TABLE": other, "--qi": qi} | {_SPELLED.get(name, f"--{name}"): of_table[name] for name in of_table})
        _measure_policy(call, Path(place), html, more)


def _measure_policy(call: Call, file: Path, html: Path | None, more: dict[str, Any]) -> None:
    """Tell of a policy's source and release."""
    unfit = {f"--{name.replace('_', '-')}": value for name, value in more.items() if name != "options"}
    if (tables := several_tables.load(file, unfit | {"--html": html})) is not None:
        several_tables.tell_risk(call, tables)
        return
    policy = loading.load_policy(file)
    both = risk.policy_risk(policy, **more)
    _write_page(call, html, both, policy.source.table or str(policy.source.file))
    _tell(call, both.as_json(), risk_text.policy_text(both))


def _measure_table(
    call: Call, place: str, table: str | None, qi: list[str], html: Path | None, more: dict[str, Any]
) -> None:
    """Tell of any table, or of a file."""
    is_file = files.is_data_file(place)
    if (table is None) != is_file:
        raise PolicyError("Write URL TABLE or FILE, then the columns: sqlanon risk URL TABLE --qi age,zip,sex.")
    what = table or place
    measured: TableRisk = risk.table_risk(None if is_file else place, what, _names(qi), **more)
    _write_page(call, html, measured, what)
    _tell(call, {"table": what, **measured.as_json()}, risk_text.table_text(measured, what))


def _refuse(given: dict[str, Any]) -> None:
    """Refuse what a policy says itself."""
    if wrong := [name for name, value in given.items() if value is not None]:
        raise PolicyError(f"A policy says all itself; leave {', '.join(wrong)} out.")


def _names(given: list[str]) -> list[str]:
    """The quasi-identifiers, of which there is one at least."""
    names = listed(given)
    if not names or not all(names):
        raise PolicyError("--qi is missing: it names the quasi-identifiers, such as --qi age,zip.")
    return names


def _population_place(population: tuple[str, str] | None, place: str) -> dict[str, str | None]:
    """The table of the population, and its database where that is another one."""
    if population is None:
        return {}
    where, table = population
    url = None if where == SAME else expanded(where)
    if url is not None and "://" not in url:
        raise PolicyError("--population is URL TABLE; - is the URL of the same database, and beside a file: - FILE.")
    return {"population": table, "population_url": None if url == place else url}


def _write_page(call: Call, page: Path | None, measured: TableRisk | PolicyRisk, table: str) -> None:
    """Write the page of the risk of a table, or of a file, which goes by its name without the directory."""
    if page is not None:
        name = Path(table).name if files.is_data_file(table) else table
        write(page, risk_page.render_risk(measured, name))
        call.note(f"Wrote {page}.")


def _tell(call: Call, data: object, text: str) -> None:
    if call.json:
        call.emit(data)
    else:
        print(text)
