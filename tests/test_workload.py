"""Prediction of a target from a release: the measures against their definitions, on both engines."""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.measures.workload.geometry import FIRST, LAST, Geometry, Reader, Span, locate
from sqlanon.measures.workload.measures import Measures, measure, measure_whole, one_class
from sqlanon.measures.workload.utility import release_utility
from sqlanon.measures.workload.views import table_view
from sqlanon.methods.clustering.policy import Microaggregation
from sqlanon.policy import Policy
from tests.oracle.brute_force import Row, entropy, variance
from tests.random_cases import many
from tests.run_support import OPTIONS, anonymize, duckdb_url, open_database
from tests.test_verify import FEW, create

pytestmark = pytest.mark.slow

COLUMNS = {"q": "BIGINT", "p": "VARCHAR(9)", "s": "VARCHAR(9)", "i": "BIGINT", "f": "FLOAT8", "d": "DECIMAL(9,2)"}
rows_of_a_table = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "", "a", "A"]),
        st.sampled_from([None, "flu", "Flu", "cold"]),
        st.sampled_from([None, -(2**62), 5, 2**62]),
        st.sampled_from([None, -1.5, 0.0, -0.0, 0.1, 1e6, 1e200, math.inf, math.nan]),
        st.sampled_from([None, "1.50", "1.5", "-7.25"]),
    ),
    min_size=1,
    max_size=30,
)


def expected(rows: Sequence[Row], classes: Sequence[Sequence[Row]], place: int) -> tuple[float, float | None]:
    """Conditional entropy in bits, and the root of the mean squared error, by definition."""
    bits = math.fsum(len(part) * entropy([plain(row[place]) for row in part], counts_null=True) for part in classes)
    squares, known = Fraction(0), sum(number(row[place]) is not None for row in rows)
    for part in classes:
        numbers = [n for row in part if (n := number(row[place])) is not None]
        squares += variance(numbers) * len(numbers)
    error = math.sqrt(squares / known) if known and place > 2 else None
    return bits / len(rows) / math.log(2), error


def plain(value: Any) -> Any:
    return "nan" if value != value else float(value) if isinstance(value, str) and "." in value else value


def number(value: Any) -> float | None:
    found = None if value is None or (isinstance(value, str) and "." not in value) else float(value)
    return found if found is not None and abs(found) <= 1e150 else None


def classes_of(rows: Sequence[Row]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[:2]].append(row)
    return found


def is_like(found: Measures, wanted: tuple[float, float | None]) -> bool:
    bits, error = wanted
    same = pytest.approx(error, rel=1e-6, abs=1e-6 * 2**-10) if error is not None else None
    return found.conditional_entropy == pytest.approx(bits, abs=1e-9) and found.rmse == same


@settings(FEW, max_examples=many(4))
@given(rows=rows_of_a_table, data=st.data())
def test_measures_are_those_of_their_definitions(engine: Engine, rows: list[Row], data: st.DataObject) -> None:
    held = classes_of(rows)
    gone = data.draw(st.sets(st.sampled_from(sorted(held, key=str))))
    suppressed = [row for key in gone for row in held[key]]
    source = create(engine, COLUMNS, rows)
    release = create(engine, COLUMNS, [row for row in rows if row not in suppressed], "released")
    for place, target in enumerate(["s", "i", "f", "d"], start=2):
        view = table_view(engine, source, ["q", "p"], target)
        whole = measure_whole(engine, view, len(rows), lacking=bool(suppressed))
        assert is_like(measure(engine, view, whole), expected(rows, list(held.values()), place)), target
        assert is_like(measure(engine, one_class(view), whole), expected(rows, [rows], place)), target
        kept = [part for key, part in held.items() if key not in gone]
        found = measure(engine, table_view(engine, release, ["q", "p"], target), whole)
        assert is_like(found, expected(rows, [*kept, suppressed] if suppressed else kept, place)), target


ROWS: list[Row] = [(n % 3 or None, "ab"[n % 2], "xyz"[n * n % 3], n**3, n / 7, f"{n % 9}.25") for n in range(60)]


def test_both_engines_give_the_same_numbers(engine: Engine) -> None:
    source = create(engine, COLUMNS, ROWS)
    found = [table_view(engine, source, ["q", "p"], target) for target in ("s", "f", "i")]
    measured = [measure(engine, view, measure_whole(engine, view, len(ROWS))) for view in found]
    errors = [None, 2.461955419944856, 59333.794354482336]
    assert measured == [Measures(3.3219280948873693 if error else 0.0, error) for error in errors]


def test_a_release_of_another_source_is_noticed(engine: Engine) -> None:
    source = create(engine, COLUMNS, ROWS[:20])
    other = create(engine, COLUMNS, ROWS[40:55], "other")
    whole = measure_whole(engine, table_view(engine, source, ["q"], "i"), 20, lacking=True)
    with pytest.raises(ConflictError, match="source changed"):
        measure(engine, table_view(engine, other, ["q"], "i"), whole)


# --- releases


PEOPLE = {
    "age": "INTEGER",
    "wage": "DECIMAL(9,2)",
    "weight": "DOUBLE PRECISION",
    "born": "DATE",
    "seen": "TIMESTAMP",
    "zip": "VARCHAR(9)",
    "job": "VARCHAR(20)",
    "member": "BOOLEAN",
    "sick": "VARCHAR(9)",
    "cost": "DOUBLE PRECISION",
}
JOBS = ["nurse", "a, b", "", "b-c", 'say "no"', "[x]", "Clerk", "NULL", "*"]
QUASI = dict.fromkeys(list(PEOPLE)[:8], "quasi-identifier") | {"sick": "sensitive", "cost": "insensitive"}


def people(rows: int, *, jobs: Sequence[str] = JOBS) -> list[Row]:
    """Rows with odd texts, and NULLs but in age; `sick` and `cost` depend on age and job."""
    random = Random(rows)

    def one() -> Row:
        age, job = random.randint(20, 70), random.choice(jobs)
        born = dt.date(1970, 1, 1) + dt.timedelta(days=random.randint(-9999, 9999))
        seen = dt.datetime(2020, 1, 1) + dt.timedelta(seconds=random.randint(0, 10**7) / 2)
        values = [age, round(random.random() * 99, 2), random.uniform(-1, 1) * 10 ** random.randint(-9, 20), born, seen]
        values += [f"{random.randint(0, 999):03}", job, random.random() < 0.5]
        shown = [None if place and random.random() < 0.05 else value for place, value in enumerate(values)]
        return (*shown, "flu" if (age < 45) == (job < "a") else "cold", age * 1.5 + jobs.index(job))

    return [one() for _ in range(rows)]


HIERARCHIES: dict[str, Any] = {
    "age": {"intervals": [5, 20]},
    "wage": "suppress",
    "weight": "suppress",
    "born": {"date": ["year", "decade"]},
    "seen": {"date": ["month", "year"]},
    "zip": {"mask": "right"},
    "job": {"mapping": {job: ["odd" if len(job) < 5 else "even", "*"] for job in JOBS}},
    "member": "suppress",
}
GROUPED = {name: {"hierarchy": one} for name, one in HIERARCHIES.items()}
SUPPRESSING = {"algorithm": {"name": "datafly"}, "suppression": 0.2}
RELEASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ranges, sets and bounds": ({"age": {"show": "bounds"}}, {}),
    "groups and their bounds": ({**GROUPED, "born": {"show": "bounds", **GROUPED["born"]}}, {}),
    "omitted rows": (GROUPED, SUPPRESSING),
    "a recoded remainder and starred rows": (
        GROUPED,
        {**SUPPRESSING, "remainder": "recode", "suppressed": {"star": "unprotected"}},
    ),
}


def released(url: str, changes: dict[str, Any], rows: Sequence[Row], **more: Any) -> tuple[Policy, dict[str, Any]]:
    """A run: its policy, and what it said. The database is closed again."""
    with open_database(url) as database:
        database.sql("DROP TABLE IF EXISTS people")
        table = database.create(PEOPLE, rows, "people")
        roles = {name: {"role": role, **changes.get(name, {})} for name, role in QUASI.items()}
        policy = database.policy(table, roles, **more)
        return policy, anonymize(policy, replace=True).as_json()


@pytest.fixture
def urls(tmp_path: Path, postgres_url: str) -> tuple[str, str]:
    """A fresh database of each engine."""
    url = duckdb_url(tmp_path / "test.duckdb")
    connect(url, create=True).close()
    return url, postgres_url


@pytest.mark.parametrize("case", RELEASES)
def test_every_row_is_found_in_the_class_that_shows_it(urls: tuple[str, str], case: str) -> None:
    changes, more = RELEASES[case]
    rows = people(240, jobs=JOBS[:7] if "job" in changes else JOBS)
    told = []
    for url in urls:
        policy, outcome = released(url, changes, rows, **more)
        gone = 0 if "suppressed" in more else outcome["release"]["suppressed"]
        utility = release_utility(policy, "sick", tree=True, options=OPTIONS)
        assert utility.tree is not None
        assert (utility.omitted, utility.tree.suppressed, utility.tree.rows) == (gone, gone, 240)
        told.append(utility.as_json())
    assert told[0] == told[1]


@pytest.mark.either_engine
def test_a_table_shown_as_it_is_predicts_as_its_source(database_url: str) -> None:
    rows = people(400, jobs=JOBS[:7])
    ones = {"age": "quasi-identifier", "job": "quasi-identifier"} | {"sick": "insensitive", "cost": "insensitive"}
    roles = {name: {"role": ones.get(name, "identifier")} for name in PEOPLE}
    privacy = [{"model": "k-anonymity", "k": 1}]
    policy, _ = released(database_url, roles, rows, privacy=privacy, subject="none")
    scores = {}
    for target, predict in (("sick", None), ("cost", None), ("cost", "class")):
        utility = release_utility(policy, target, tree=True, predict=predict, options=OPTIONS)
        assert utility.release == utility.original
        assert utility.tree is not None
        assert utility.tree.release == utility.tree.source
        scores[utility.tree.predicts] = utility.tree.source, utility.tree.baseline
        if target == "sick":
            assert utility.tree.source > utility.tree.baseline + 0.2
    assert scores["number"][0] < scores["number"][1] / 2
    drawn = release_utility(policy, "sick", tree=True, sample=100, options=OPTIONS)
    again = release_utility(policy, "sick", tree=True, sample=100, options=OPTIONS)
    assert drawn == again
    assert drawn.tree is not None
    assert (drawn.tree.rows, drawn.tree.suppressed) == (100, 0)


@pytest.mark.either_engine
def test_a_run_with_a_target_reports_what_the_release_predicts(database_url: str) -> None:
    search = {"name": "top-down", "quality": "information-gain", "target": "sick"}
    for target in ("sick", "cost"):
        policy, outcome = released(
            database_url, GROUPED, people(120, jobs=JOBS[:7]), algorithm={**search, "target": target}
        )
        utility = release_utility(policy, target, options=OPTIONS)
        found = [outcome[of]["metrics"] if of else outcome["metrics"] for of in ("source", None)]
        told = [{key: m[key] for key in m if key in ("conditional_entropy", "rmse")} for m in found]
        assert told == [utility.original.as_json(), utility.release.as_json()]


def test_what_can_not_be_measured_is_refused(tmp_path: Path) -> None:
    url = duckdb_url(tmp_path / "test.duckdb")
    connect(url, create=True).close()
    policy, _ = released(url, {"age": {"show": "midpoint"}, "weight": {"show": "mean"}}, people(50))
    for target, message in (
        ("age", "'age': it must be sensitive or insensitive, not quasi-identifier"),
        ("sik", "'sik': people has no such column; did you mean 'sick'"),
    ):
        with pytest.raises(PolicyError, match=message):
            release_utility(policy, target, options=OPTIONS)
    with pytest.raises(PolicyError, match=r"attributes\.age: show: midpoint .*\n.*weight: show: mean"):
        release_utility(policy, "sick", tree=True, options=OPTIONS)
    for limit in ({"top": 40}, {"bottom": 30, "show": "bounds"}):
        policy, _ = released(url, {"age": limit}, people(50))
        with pytest.raises(PolicyError, match=rf"attributes\.age: values beyond {next(iter(limit))} are shown as one"):
            release_utility(policy, "sick", tree=True, options=OPTIONS)
    clusters = policy.model_copy(update={"algorithm": Microaggregation(name="microaggregation")})
    with pytest.raises(PolicyError, match=r"microaggregation shows age, .*as centres"):
        release_utility(clusters, "sick", tree=True, options=OPTIONS)
    policy, _ = released(url, {}, people(50))
    with pytest.raises(PolicyError, match="'sick' is no number"):
        release_utility(policy, "sick", tree=True, predict="number", options=OPTIONS)
    with open_database(url) as database:
        database.sql("UPDATE people SET age = age + 1")
    with pytest.raises(ConflictError, match="not those that the release shows"):
        release_utility(policy, "sick", tree=True, options=OPTIONS)
    with open_database(url) as database:
        database.sql("DELETE FROM people WHERE age < 40")
    with pytest.raises(ConflictError, match="more rows than its source"):
        release_utility(policy, "sick", options=OPTIONS)
    with open_database(url) as database:
        database.sql("ALTER TABLE people_r DROP COLUMN sick")
    with pytest.raises(PolicyError, match="no column 'sick'"):
        release_utility(policy, "sick", options=OPTIONS)


@pytest.mark.parametrize(
    ("kind", "cell", "low", "high"),
    [
        (Kind.INTEGER, "[-5--1]", "-5", "-1"),
        (Kind.FLOAT, "{NULL, -1e-07-2.5e+20}", FIRST, "2.5e+20"),
        (Kind.FLOAT, "[-Infinity-NaN]", "-Infinity", "NaN"),
        (Kind.DECIMAL, "1.50", "1.5", "1.50"),
        (Kind.DATE, "[0044-03-15 BC-2024-05-31]", "0044-03-15 BC", "2024-05-31"),
        (Kind.TIMESTAMPTZ, "{NULL, 2024-01-01 12:00:00+00}", FIRST, "2024-01-01 12:00:00+00"),
        (Kind.TEXT, '{"a, b", "say ""no""", é}', "a, b", "é"),
        (Kind.TEXT, '{NULL, "Aaron"-"Zoe"}', FIRST, "Zoe"),
        (Kind.TEXT, '["a-b"-"c"]', "a-b", "c"),
        (Kind.TEXT, '""', "", ""),
        (Kind.TEXT, "b-c", "b-c", "b-c"),
        (Kind.BOOLEAN, "{false, true}", "false", "true"),
        (Kind.INTEGER, "NULL", FIRST, FIRST),
        (Kind.TEXT, "*", FIRST, LAST),
    ],
)
def test_cells_are_read_back(kind: Kind, cell: str, low: Any, high: Any) -> None:
    reader = Reader(kind)
    ends = [end if end in (FIRST, LAST) else reader.key(end) for end in (low, high)]
    assert reader.span([cell]) == Span(*ends)


@pytest.mark.parametrize(("kind", "cell"), [(Kind.INTEGER, "25-34"), (Kind.INTEGER, "x"), (Kind.TEXT, "{a,b}")])
def test_what_is_no_label_is_not_read(kind: Kind, cell: str) -> None:
    assert Reader(kind).span([cell]) is None


def test_days_are_in_order() -> None:
    days = ["-infinity", "0045-01-01 BC", "0044-03-15 BC", "0001-01-01", "1999-12-31", "12024-01-01", "infinity"]
    assert sorted(days, key=Reader(Kind.DATE).key) == days


@pytest.mark.parametrize("seed", range(3))
def test_the_smallest_box_is_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    low = random.integers(-1, 12, (500, 3)).astype(float)
    high = low + random.integers(0, 3, (500, 3)) * random.integers(0, 3, (500, 1))
    points = random.integers(-1, 15, (400, 3)).astype(float)
    found = locate(Geometry(points, low, high, np.full(3, 20.0)))
    sizes = (high - low).sum(axis=1)
    for point, box in zip(points, found, strict=True):
        covering = [n for n in range(500) if (low[n] <= point).all() and (point <= high[n]).all()]
        assert box == min(covering, key=lambda n: (sizes[n], n), default=-1)
