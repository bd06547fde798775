"""Risk of a sample whose population is a table: by brute force, class by class, on both engines."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from sqlanon import PolicyError, table_risk
from sqlanon.results.codec import to_json
from sqlanon.results.risk import Journalist
from tests.cli.support import call, only_object
from tests.inquiries.risk.brute_force import COLUMNS, QUASI_IDENTIFIERS, class_sizes, create, people
from tests.run_support import Row, duckdb_url, open_database

pytestmark = pytest.mark.slow

THRESHOLDS = [0.1, 0.2, 0.5, 0.99]


def require_journalist(
    found: Journalist | None, sample: Sequence[Row], everybody: Sequence[Row], *, by_person: bool
) -> None:
    """Hold the figures against the size in the population of each member's class."""
    here, there = (class_sizes(rows, by_person=by_person) for rows in (sample, everybody))
    sizes = {key: max(members, there.get(key, 0)) for key, members in here.items()}
    risks = [1 / sizes[key] for key, members in here.items() for _ in range(members)]
    assert found is not None
    assert found.by == "population"
    assert (found.max, found.mean) == (max(risks), pytest.approx(sum(risks) / len(risks)))
    assert [one.members for one in found.at_risk] == [sum(r > t for r in risks) for t in THRESHOLDS]
    assert found.population == sum(there.values())
    assert found.uniques == sum(members for key, members in here.items() if sizes[key] == 1)
    assert found.lacking == sum(max(0, members - there.get(key, 0)) for key, members in here.items())


@pytest.mark.parametrize("subject", [None, "person"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_classes_are_as_large_as_in_the_population(database_url: str, seed: int, subject: str | None) -> None:
    everybody = people(seed, rows=400, persons=90)
    sample = random.Random(seed).sample(everybody, 60)
    if seed == 3:
        sample += [(7, 99, None, "f"), (8, 99, None, "f"), (9, None, "", None)]
    table, population = create(database_url, sample), create(database_url, everybody)
    risk = table_risk(
        database_url, table, QUASI_IDENTIFIERS, subject=subject, population=population, thresholds=THRESHOLDS
    )
    require_journalist(risk.journalist, sample, everybody, by_person=subject is not None)
    assert any("The population lacks 3 " in one for one in risk.warnings) is (seed == 3)
    plain = table_risk(database_url, table, QUASI_IDENTIFIERS, subject=subject, thresholds=THRESHOLDS)
    assert (risk.prosecutor, risk.sizes, plain.journalist) == (plain.prosecutor, plain.sizes, None)


@pytest.mark.either_engine
def test_a_population_without_the_subject_has_a_row_for_each(database_url: str) -> None:
    sample, everybody = people(4, rows=50), people(4, rows=300)
    table = create(database_url, sample)
    with open_database(database_url) as database:
        columns = {name: type_ for name, type_ in COLUMNS.items() if name != "person"}
        population = database.create(columns, [row[1:] for row in everybody])
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person", population=population)
    here, there = class_sizes(sample, by_person=True), class_sizes(everybody)
    assert risk.journalist is not None
    assert risk.journalist.population == len(everybody)
    assert risk.journalist.max == max(1 / max(n, there.get(key, 0)) for key, n in here.items())


@pytest.mark.either_engine
def test_columns_of_another_kind_are_refused(database_url: str) -> None:
    table = create(database_url, people(5))
    with open_database(database_url) as database:
        others = database.create({**COLUMNS, "age": "VARCHAR(3)"}, [])
        wider = database.create({**COLUMNS, "age": "BIGINT", "zip": "VARCHAR(9)"}, people(5))
        nulls = database.create(COLUMNS, [(None, 1, "x", "f")])
    with pytest.raises(PolicyError, match=r"Column 'age' is .* in the population"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, population=others)
    with pytest.raises(PolicyError, match="has no column 'agee'"):
        table_risk(database_url, table, ["agee"], population=wider)
    with pytest.raises(PolicyError, match=r"The subject 'person' of the population .* is NULL in 1 of 1 row,"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person", population=nulls)
    with pytest.raises(PolicyError, match="give one"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, population=wider, sample_of=0.1)
    with pytest.raises(PolicyError, match="There is no table"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, population="nobody")
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, population=wider)
    assert risk.journalist is not None
    assert (risk.journalist.lacking, risk.journalist.max) == (0, risk.prosecutor.max)


def test_a_file_is_called_by_its_name(tmp_path: Path) -> None:
    sample, everybody = tmp_path / "sample.csv", tmp_path / "everybody.csv"
    sample.write_text("age,zip\n1,2\n")
    everybody.write_text("age,zip\na,2\n")
    with pytest.raises(PolicyError, match=rf"{re.escape(str(sample))} has no column 'agee'"):
        table_risk(None, str(sample), ["agee"])
    with pytest.raises(PolicyError, match=rf"in the population {re.escape(str(everybody))}: show it there"):
        table_risk(None, str(sample), ["age"], population=str(everybody))


def test_the_own_file_by_another_name_is_the_same_database(tmp_path: Path) -> None:
    (tmp_path / "link.duckdb").symlink_to(tmp_path / "own.duckdb")
    own, link = (duckdb_url(tmp_path / f"{name}.duckdb") for name in ("own", "link"))
    table = create(own, people(6, rows=40))
    near, far = (
        table_risk(own, table, QUASI_IDENTIFIERS, population=table, population_url=url) for url in (None, link)
    )
    assert far == near


@pytest.mark.either_engine
def test_the_command_names_the_population_by_url_and_table(database_url: str) -> None:
    sample, everybody = people(6, rows=40), people(6, rows=200)
    table, population = create(database_url, sample), create(database_url, everybody)
    arguments = ("risk", database_url, table, "--qi", "age,zip,sex")
    expected = to_json(table_risk(database_url, table, QUASI_IDENTIFIERS, population=population))
    for where in (database_url, "-"):
        result = call(*arguments, "--population", where, population, "--json")
        assert result.exit_code == 0, result.output
        assert only_object(result.stdout) == {"table": table, **expected}
    text = call(*arguments, "--population", "-", population).stdout
    assert "(journalist)" in text
    assert "Alone in the population of 200 rows:" in text


def test_a_file_has_a_population_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("age,sex\n1,f\n2,f\n", encoding="utf-8")
    (tmp_path / "all.csv").write_text("sex,age\nf,1\nf,2\nf,2\n", encoding="utf-8")
    files = [tmp_path / "some.csv", tmp_path / "all.csv"]
    result = call("risk", files[0], "--qi", "age,sex", "--population", "-", files[1], "--json")
    assert result.exit_code == 0, result.output
    assert only_object(result.stdout)["journalist"]["mean"] == 0.75
