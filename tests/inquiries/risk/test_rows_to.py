"""The risk of each row beside its key: on both engines as by brute force, and for its owner alone."""

from __future__ import annotations

from collections import Counter

import pytest

from sqlanon import PolicyError, table_risk
from sqlanon.measures.population import journalist_risk
from tests.cli.support import call, execute, query
from tests.inquiries.risk.brute_force import people
from tests.inquiries.risk.test_individual import COLUMNS, QUASI_IDENTIFIERS, risks, weighted
from tests.inquiries.risk.test_suda import dis_scores, minimal_uniques, suda_scores
from tests.run_support import Row, open_database

pytestmark = pytest.mark.slow


def create(url: str, rows: list[Row]) -> str:
    """A table whose rows have a number, which is the key."""
    with open_database(url) as database:
        return database.create({"number": "INTEGER", **COLUMNS}, [(n, *row) for n, row in enumerate(rows)])


def written(url: str, table: str) -> dict[int, tuple[float, ...]]:
    """The columns behind the key, by the key."""
    rows = query(url, f"SELECT * FROM {table}")
    found = {row[0]: row[1:] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(
    ("subject", "weights", "suda"),
    [
        (None, None, None),
        (None, "weight", None),
        ("person", None, None),
        ("person", "weight", None),
        (None, None, 3),
        (None, "weight", 3),
    ],
)
def test_rows_have_the_risks_of_brute_force(
    database_url: str, subject: str | None, weights: str | None, suda: int | None
) -> None:
    rows = weighted(1) if weights else [(*row[:-1], 1.0) for row in weighted(1)]
    table = create(database_url, rows)
    given = {"subject": subject, "weights": weights, "suda": suda, "rows_to": f"{table}_rows", "key": "number"}
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, **given)
    assert risk.suda == table_risk(database_url, table, QUASI_IDENTIFIERS, suda=suda).suda
    found = written(database_url, f"{table}_rows")
    of_members = risks(rows, by_person=subject is not None)
    sizes = Counter(key for _, key in of_members)
    classes = [(age, zip_code, sex) for _, age, zip_code, sex, _, _ in rows]
    suda_of, dis_of = [0.0] * len(rows), [0.0] * len(rows)
    if suda is not None:
        suda_of = suda_scores(minimal_uniques(classes, suda), 3, suda)
        dis_of = dis_scores(suda_of, 3, sum(2 for n in Counter(classes).values() if n == 2), 0.01)
    assert found.keys() == set(range(len(rows)))
    for number, (size, individual, *scores) in found.items():
        member = number if subject is None else rows[number][0]
        assert size == sizes[classes[number]]
        assert individual == pytest.approx(of_members[member, classes[number]], rel=1e-9)
        assert scores == ([] if suda is None else [suda_of[number], pytest.approx(dis_of[number], rel=1e-9)])


@pytest.mark.parametrize("weights", [None, "weight"])
def test_rows_of_a_person_have_the_scores_of_the_person(database_url: str, weights: str | None) -> None:
    """Of persons who are one row each; some have several rows, which are equal in the columns."""
    persons = {row[0]: row for row in weighted(6) if row[0] % 3}
    ordered = list(persons.values())
    repeated = [row for row in ordered for _ in range(1 + row[0] % 4)]
    table = create(database_url, [(*row[:-1], 1.0) for row in repeated] if weights is None else repeated)
    risk = table_risk(
        database_url,
        table,
        QUASI_IDENTIFIERS,
        subject="person",
        weights=weights,
        suda=3,
        rows_to=f"{table}_rows",
        key="number",
    )
    classes = [(age, zip_code, sex) for _, age, zip_code, sex, *_ in ordered]
    suda_of = suda_scores(minimal_uniques(classes, 3), 3, 3)
    dis_of = dis_scores(suda_of, 3, sum(2 for n in Counter(classes).values() if n == 2), 0.01)
    scores = {row[0]: scores for row, *scores in zip(ordered, suda_of, dis_of, strict=True)}
    found = written(database_url, f"{table}_rows")
    assert found.keys() == set(range(len(repeated)))
    sizes = Counter(classes)
    for number, (size, _, *of_row) in found.items():
        person, *rest = repeated[number]
        assert size == sizes[tuple(rest[:3])]
        assert of_row == [scores[person][0], pytest.approx(scores[person][1], rel=1e-9)]
    assert risk.suda is not None
    assert risk.suda.score_max == max(suda_of) > 0


@pytest.mark.either_engine
def test_a_sampling_fraction_is_that_of_the_risks(database_url: str) -> None:
    table = create(database_url, weighted(2))
    table_risk(database_url, table, QUASI_IDENTIFIERS, sample_of=0.25, rows_to=f"{table}_rows", key="number")
    for size, risk in written(database_url, f"{table}_rows").values():
        assert risk == pytest.approx(journalist_risk(int(size), 0.25))


@pytest.mark.either_engine
def test_what_exists_or_has_no_key_is_refused_before_anything_is_written(database_url: str) -> None:
    table = create(database_url, weighted(3))
    wrong = {
        "exists, and --rows-to replaces nothing": {"rows_to": table, "key": "number"},
        "has no column 'nr'": {"rows_to": "new_one", "key": "nr"},
        "beside its --key": {"rows_to": "new_one"},
        "--rows-to TABLE": {"key": "number"},
        "without --population": {"rows_to": "new_one", "key": "number", "population": table},
        "There is no schema": {"rows_to": "nowhere.new_one", "key": "number"},
        "differ among the rows": {"rows_to": "new_one", "key": "number", "subject": "sex", "weights": "weight"},
    }
    for match, given in wrong.items():
        with pytest.raises(PolicyError, match=match):
            table_risk(database_url, table, ["age"], **given)
    assert not query(database_url, "SELECT 1 FROM information_schema.tables WHERE table_name = 'new_one'")
    with pytest.raises(PolicyError, match="--rows-to TABLE"):
        table_risk(None, "some.csv", ["age"], rows_to="new_one", key="number")


@pytest.mark.either_engine
def test_a_key_named_as_a_figure_is_refused(database_url: str) -> None:
    with open_database(database_url) as database:
        table = database.create({"Class_Size": "INTEGER", "age": "INTEGER"}, [(1, 2)])
    with pytest.raises(PolicyError, match="has the name of a column that --rows-to writes"):
        table_risk(database_url, table, ["age"], rows_to="new_one", key="Class_Size")


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("keys", "match"),
    [
        (["a", "b", "b", "c", "c"], "of 5 rows 0 have none .NULL., and the other 5 have 3 different keys"),
        (["a", None, "b", None, "c"], "of 5 rows 2 have none .NULL., and the other 3 have 3 different keys"),
    ],
)
@pytest.mark.parametrize("subject", [None, "person"])
def test_a_key_that_does_not_tell_rows_apart_is_refused(
    database_url: str, keys: list[str | None], match: str, subject: str | None
) -> None:
    with open_database(database_url) as database:
        columns = {"my key": "VARCHAR(9)", "person": "INTEGER", "age": "INTEGER"}
        table = database.create(columns, [(key, place, 1) for place, key in enumerate(keys)])
    with pytest.raises(PolicyError, match=f"key 'my key' does not tell the rows apart: {match}"):
        table_risk(database_url, table, ["age"], subject=subject, rows_to="new_one", key="my key")
    assert not query(database_url, "SELECT 1 FROM information_schema.tables WHERE table_name = 'new_one'")


def test_nobody_else_may_read_the_table(postgres_url: str) -> None:
    """Whatever default privileges give."""
    table = create(postgres_url, weighted(4))
    execute(postgres_url, "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
    for suda in (None, 2):
        name = f"{table}_{suda}"
        table_risk(postgres_url, table, QUASI_IDENTIFIERS, suda=suda, rows_to=name, key="number")
        ((others,),) = query(
            postgres_url,
            "SELECT count(*) FROM information_schema.role_table_grants"
            f" WHERE table_name = lower('{name}') AND grantee <> current_user",
        )
        assert others == 0
    execute(postgres_url, "CREATE TABLE seen (n integer)")
    assert query(postgres_url, "SELECT has_table_privilege('public', 'seen', 'SELECT')") == [(True,)]


@pytest.mark.either_engine
def test_the_command_writes_it(database_url: str) -> None:
    table = create(database_url, [(*row, 1, 1.0) for row in people(5)])
    arguments = ("risk", database_url, table, "--qi", "age,zip,sex", "--suda", "2", "--rows-to", "my_risks")
    result = call(*arguments, "--key", "number", "--json")
    assert result.exit_code == 0, result.output
    assert len(written(database_url, "my_risks")) == 150
    assert call(*arguments, "--key", "number").exit_code == 2
    assert call(*arguments).exit_code == 2
