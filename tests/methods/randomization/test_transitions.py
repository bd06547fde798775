"""Post-randomization by a matrix: what files are refused, draws against plain Python, and reconstruction."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon import load_policy, reconstruct
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.estimating import estimate
from sqlanon.models.randomization.changes import Transition, read_changes
from sqlanon.models.randomization.draws import weighted
from sqlanon.models.randomization.matrix_file import Matrix, privacy_loss_of, read_matrix
from sqlanon.policy.writer import policy_text
from tests.cli.support import query
from tests.randomize_support import KEY, digest_of, drawn, line_of, randomize, randomized_policy
from tests.run_support import Database, open_database

JOBS = ("clerk", "smith", "o'baker")
FILE = "true;clerk;smith;o'baker\no'baker;0.2;0.3;0.5\nclerk;0.8;0.15;0.05\nsmith;0.1;0.8;0.1\n"
ROWS = ((0.8, 0.15, 0.05), (0.1, 0.8, 0.1), (0.2, 0.3, 0.5))
ONE_WAY = "true,clerk,smith,o'baker\nclerk,0.7,0.3,0\nsmith,0.25,0.75,0\no'baker,0.5,0.5,0\n"


def written(folder: Path, text: str) -> str:
    folder.mkdir(exist_ok=True)
    file = folder / "matrix.csv"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_matrix_is_read_exactly(tmp_path: Path) -> None:
    matrix = read_matrix(written(tmp_path, FILE))
    rows = (("0.8", "0.15", "0.05"), ("0.1", "0.8", "0.1"), ("0.2", "0.3", "0.5"))
    assert matrix == Matrix(JOBS, tuple(tuple(map(Fraction, row)) for row in rows))


REFUSED = {
    "a row that is too little": ("x,a,b\na,0.5,0.4999999999999\nb,0.5,0.5", "line 2 that are 1e-13 less than 1"),
    "a row that is too much": ("x,a,b\na,0.5,0.5\nb,0.5,0.6", "line 3 that are 0.1 more than 1"),
    "a value without a line": ("x,a,b,c\na,0.5,0.5,0\nb,0.5,0.5,0", "lacks a line for 1 value"),
    "a line without a column": (
        "x,a,b\na,0.5,0.5\nb,0.5,0.5\nc,0.5,0.5",
        "a value in line 4 that its first line lacks",
    ),
    "a value twice": ("x,a,a\na,0.5,0.5\nb,0.5,0.5", "a value twice in its first line"),
    "a line twice": ("x,a,b\na,0.5,0.5\nb,0.5,0.5\nb,0.5,0.5", "two lines of one value"),
    "a probability too few": ("x,a,b\na,1\nb,0.5,0.5", "has 1 probability in line 2, and 2 values"),
    "no number": ("x,a,b\na,0.5,NaN\nb,0.5,0.5", "line 2 that is no decimal number"),
    "a negative one": ("x,a,b\na,1.5,-0.5\nb,0.5,0.5", "line 2 that is no decimal number"),
    "one that can't be drawn": ("x,a,b\na,0.9999999999,0.0000000001\nb,0.5,0.5", "line 2 above 0 and below 1e-09"),
    "a value that stays": ("x,a,b\na,1,0\nb,0.5,0.5", "keeps the value of line 2 always"),
    "a value that tells its origin": ("x,a,b,c\na,0.5,0.5,0\nb,0.5,0.5,0\nc,0.3,0.3,0.4", "above 0 in column 4"),
    "two that change places": ("x,a,b\na,0,1\nb,1,0", "above 0 in column 2"),
    "one value": ("x,a\na,1", "one for each of them, of which there are two"),
    "one of a size that takes long": ("x,a,b\na,1e-99999999,0.5\nb,0.5,0.5", "line 2 that is no decimal number"),
    "nothing": ("", "needs a line with the values"),
    "too many": ("x," + ",".join(map(str, range(101))) + "\n" + "1\n" * 2, "has 101 values, and 100 at most"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_matrix_that_hides_nothing_or_is_none_is_refused(tmp_path: Path, name: str) -> None:
    text, problem = REFUSED[name]
    with pytest.raises(PolicyError, match=problem):
        read_matrix(written(tmp_path, text))


def test_a_file_that_is_not_there_is_refused_with_its_column(database: Database) -> None:
    table = database.create({"job": "VARCHAR(9)"}, [("clerk",)])
    policy = randomized_policy(database, table, {"job": "sensitive"}, {"job": {"transition": "/nowhere/m.csv"}})
    with pytest.raises(PolicyError, match=r"job\.transition: .*No such file"):
        randomize(policy)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any), min_size=3, max_size=3))
def test_the_loss_is_that_of_the_likeliest_ratio(weights: list[list[int]]) -> None:
    masses = [[one.mass for one in weighted([Fraction(weight) for weight in row]).segments] for row in weights]
    shares = [[weight / sum(row) for weight in row] for row in weights]
    pairs = [(a, b, shown) for a in range(3) for b in range(3) for shown in range(3) if shares[a][shown]]
    expected = (
        None
        if any(not shares[b][shown] for _, b, shown in pairs)
        else max(math.log(shares[a][shown] / shares[b][shown]) for a, b, shown in pairs)
    )
    loss = privacy_loss_of(masses)
    assert loss is None if expected is None else loss == pytest.approx(expected, abs=1e-9)


def people(count: int) -> list[tuple[Any, ...]]:
    return [(JOBS[n * n % 7 % 3], n % 4, n % 5 == 0) for n in range(count)]


def test_a_key_decides_every_released_value(database: Database, tmp_path: Path) -> None:
    """Of texts, and of whole numbers, by draws of each true value's own."""
    rows = people(300)
    table = database.create({"job": "VARCHAR(9)", "grade": "INTEGER", "member": "BOOLEAN"}, rows)
    grades = tmp_path / "grades.csv"
    grades.write_text("x,0,1,2,3\n" + "".join(f"{n},{','.join(['0.25'] * 4)}\n" for n in range(4)), encoding="utf-8")
    changes = {"job": {"transition": written(tmp_path, FILE)}, "grade": {"transition": str(grades)}}
    roles = {"job": "sensitive", "grade": "quasi-identifier", "member": "insensitive"}
    result = randomize(randomized_policy(database, table, roles, changes))
    assert database.sql(f"SELECT job, grade, member FROM {table}_r") == in_python(rows)
    assert not any(check.violations for check in result.checks.values())
    job, grade = result.columns
    assert job.epsilon == pytest.approx(math.log(10))
    assert job.amounts["kept"] == 0.8
    assert grade.epsilon == 0
    told = database.sql(f"SELECT * FROM {table}_r_noise")
    job_change = read_changes(told)["job"]
    assert isinstance(job_change, Transition)
    assert {(job_change.values[a], job_change.values[b]): share for (a, b), share in job_change.cells.items()} == {
        (one, other): ROWS[a][b] for a, one in enumerate(JOBS) for b, other in enumerate(JOBS)
    }


def in_python(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    turns: Counter[tuple[Any, ...]] = Counter()
    released = []
    for job, grade, member in rows:
        turns[job, grade, member] += 1
        place = JOBS.index(job)
        line = (
            line_of((job, grade, "true" if member else "false")).replace("4:true", "true").replace("5:false", "false")
        )
        of = (turns[job, grade, member], line)
        shares = [Fraction(str(share)) for share in (*ROWS[place][place:], *ROWS[place][:place])]
        moved = drawn(weighted(shares), KEY, 0, 0, *of)
        farther = drawn(weighted([Fraction(1)] * 4), KEY, 1, 1, *of)
        released.append((JOBS[(place + moved) % 3], (grade + farther) % 4, member))
    assert digest_of(KEY, 0, 1, "x")
    return sorted(released, key=lambda row: (row[0].encode(), *row[1:]))


def test_a_value_of_no_line_is_refused(database: Database, tmp_path: Path) -> None:
    table = database.create({"job": "VARCHAR(9)"}, [("clerk",), ("lawyer",), (None,)])
    policy = randomized_policy(database, table, {"job": "sensitive"}, {"job": {"transition": written(tmp_path, FILE)}})
    with pytest.raises(PolicyError) as refused:
        randomize(policy)
    assert "job: 1 row holds NULL" in str(refused.value)
    assert "job: 1 row holds a value that is not among the declared ones" in str(refused.value)
    assert database.leftovers() == []


CHANGED = {"INTEGER": ["7", "007"], "SMALLINT": ["7", "99999"], "BOOLEAN": ["true", "yes"], "BIGINT": ["7", "seven"]}


@pytest.mark.parametrize("type_", [*CHANGED, "CHAR(3)", "VARCHAR(3)"])
def test_values_that_a_column_would_show_in_another_way_are_refused(database: Database, type_: str) -> None:
    """A value that is cut, or read as another one, would be told as one that nobody sees."""
    if "(" in type_ and database.engine == "duckdb":
        return  # lengths mean nothing there
    values = CHANGED.get(type_, ["abc", "abcdef"])
    table = database.create({"x": type_}, [(True if type_ == "BOOLEAN" else values[0],)])
    response = {"response": "keep", "epsilon": 1, "values": values}
    with pytest.raises(PolicyError, match=r"columns\.x: a declared value .*would not be released as it is written"):
        randomize(randomized_policy(database, table, {"x": "sensitive"}, {"x": response}))
    assert database.leftovers() == []


def test_the_distribution_comes_back(database_url: str, tmp_path: Path) -> None:
    """By the inverse matrix; by rounds, and by name alone, where it has none."""
    rows = people(5000)
    roles = {"job": "sensitive", "grade": "insensitive", "member": "insensitive"}
    changes = [{"job": {"transition": written(tmp_path / str(n), text)}} for n, text in enumerate((FILE, ONE_WAY))]
    with open_database(database_url) as database:
        table = database.create({"job": "VARCHAR(9)", "grade": "INTEGER", "member": "BOOLEAN"}, rows)
        policy, one_way = (randomized_policy(database, table, roles, change) for change in changes)
    randomize(policy)
    estimated = reconstruct(policy, "job")
    assert estimated.method == "inversion"
    true = Counter(job for job, *_ in rows)
    shares = {share.value: share.share for share in estimated.groups[0].shares}
    assert all(shares[job] == pytest.approx(true[job] / 5000, abs=0.05) for job in JOBS)
    randomize(one_way, replace=True)
    counts = dict(query(database_url, f"SELECT job, count(*) FROM {table}_r GROUP BY 1"))
    assert set(counts) == {"clerk", "smith"}
    estimated = reconstruct(one_way, "job")
    cells = [(0, 0, 0.7), (0, 1, 0.3), (1, 0, 0.5), (1, 1, 0.5), (2, 0, 0.25), (2, 1, 0.75)]
    (rounds,) = estimate([{0: counts["clerk"], 1: counts["smith"]}], range(3), cells)
    assert estimated.method == "em"
    assert [one.share for one in estimated.groups[0].shares] == pytest.approx(list(rounds.shares.values()), abs=1e-6)
    with pytest.raises(PolicyError, match="job has no inverse"):
        reconstruct(one_way, "job", method="inversion")


def test_a_matrix_is_beside_its_policy(tmp_path: Path) -> None:
    written(tmp_path, FILE)
    file = tmp_path / "policy.yml"
    file.write_text(
        "source: {url: 'duckdb:///x.db', table: t}\nrelease: {table: r}\nattributes: {job: {role: sensitive}}\n"
        "privacy: [{model: randomization}]\n"
        "algorithm: {name: randomize, columns: {job: {transition: matrix.csv}}}\n",
        encoding="utf-8",
    )
    assert str(tmp_path / "matrix.csv") in policy_text(load_policy(file))
