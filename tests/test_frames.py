"""Data that a program holds, anonymized: every kind of it, its types there and back, and what is refused."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqlanon
from sqlanon import Anonymized, PolicyError, ProtectionError, VerificationError, anonymize, build_policy, verify_release
from sqlanon.api.frames.anonymizing import _document, _placed
from sqlanon.releases import equivalence_classes
from tests.cli.support import execute, make_patients, query

pytestmark = pytest.mark.slow

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).parents[1]
ROWS = 120
POLICY: dict[str, Any] = {
    "attributes": {
        "age": {"role": "quasi-identifier"},
        "sex": {"role": "quasi-identifier"},
        "ill": {"role": "sensitive"},
    },
    "privacy": [{"model": "k-anonymity", "k": 5}],
}


@pytest.fixture(autouse=True)
def nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs from memory into memory write no file: neither here nor where temporary files and state go."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    places = [here, tmp_path / "temporary", tmp_path / "state"]
    for name, place in zip(("TMPDIR", "XDG_STATE_HOME"), places[1:], strict=True):
        place.mkdir()
        monkeypatch.setenv(name, str(place))
    yield
    gc.collect()
    assert [path for place in places for path in place.rglob("*") if path.suffix != ".html"] == []


def people(**more: Any) -> Any:
    """A small frame of people."""
    columns = {
        "age": [20 + i * 7 % 40 for i in range(ROWS)],
        "sex": ["fm"[i % 2] for i in range(ROWS)],
        "ill": [["flu", "cold", "none"][i % 3] for i in range(ROWS)],
    }
    return pd.DataFrame({**columns, **more})


def policy(**more: Any) -> dict[str, Any]:
    """The policy for it, with a role for each further column."""
    kept = {name: role if isinstance(role, dict) else {"role": role} for name, role in more.items()}
    return {**POLICY, "attributes": {**POLICY["attributes"], **kept}}


def require_protected(release: Anonymized, source: Any) -> Any:
    """The released frame; it holds the source's rows, in classes of five."""
    frame = release.df()
    assert sorted(frame["ill"]) == sorted(source["ill"])
    assert frame.groupby(["age", "sex"], observed=True).size().min() >= 5
    assert release.result.verified
    return frame


def test_a_pandas_frame() -> None:
    source = people()
    with anonymize(source, POLICY) as release:
        frame = require_protected(release, source)
        assert list(frame.columns) == ["age", "sex", "ill"]
        assert "k-anonymity" in release.report()
        assert "Verified: k-anonymity (k 5)" in release._repr_html_()
        assert re.fullmatch(r"<Anonymized: 120 rows in \d+ classes, verified>", repr(release))
        assert verify_release(release.policy).satisfied
    assert list(source.columns) == ["age", "sex", "ill"]


def test_the_release_is_that_of_a_run(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path / 'one.duckdb'}"
    source = people()
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM source")
    sqlanon.run(build_policy({**POLICY, "source": {"url": url, "table": "people"}, "release": {"table": "r"}}))
    rows = [tuple(row) for row in anonymize(source, POLICY).df().itertuples(index=False)]
    assert rows == query(url, "SELECT * FROM r")


def test_policies_in_every_form(tmp_path: Path) -> None:
    source = people()
    text = "privacy: [{model: k-anonymity, k: 5}]\nattributes:\n" + "".join(
        f"  {name}: {{role: {one['role']}}}\n" for name, one in POLICY["attributes"].items()
    )
    file = tmp_path / "policy.yml"
    file.write_text("source: {url: '${NOT_SET}', table: t}\nrelease: {file: r.csv}\n" + text)
    built = build_policy({**POLICY, "source": {"file": "a.csv"}, "release": {"file": "r.csv"}})
    place = {"url": "duckdb:///x.duckdb", "table": "t"}
    placed = [
        _placed(*_document(form), place, "duckdb:///r", keeps_catalog=False)
        for form in (POLICY, text, file, str(file), built)
    ]
    assert all(one == placed[0] for one in placed)
    require_protected(anonymize(source, file), source)
    assert not (tmp_path / "r.csv").exists()


def test_polars_and_arrow() -> None:
    polars = pytest.importorskip("polars")
    source = people()
    frame = polars.from_pandas(source).with_columns(polars.col("sex").cast(polars.Categorical))
    for data in (frame, frame.to_arrow()):
        release = anonymize(data, POLICY)
        require_protected(release, source)
        assert release.pl().shape == (ROWS, 3)
        assert release.arrow().column_names == ["age", "sex", "ill"]


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_file(tmp_path: Path, name: str) -> None:
    source, path = people(), tmp_path / name
    source.to_csv(path, index=False) if name.endswith("csv") else source.to_parquet(path)
    require_protected(anonymize(path if name.endswith("csv") else str(path), POLICY), source)


@pytest.mark.parametrize("place", [":memory:", "file"])
def test_a_duckdb_connection(tmp_path: Path, place: str) -> None:
    source = people()
    connection = duckdb.connect(place if place == ":memory:" else str(tmp_path / "people.duckdb"))
    connection.execute("CREATE TABLE people AS SELECT * FROM source")
    require_protected(anonymize(connection, POLICY, table="main.people"), source)
    assert connection.execute("SHOW TABLES").fetchall() == [("people",)]
    assert connection.execute(
        "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'sqlanon'"
    ).fetchall() == [(0,)]
    connection.close()


def test_an_sqlalchemy_engine(database_url: str) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    make_patients(database_url)
    if database_url.startswith("duckdb"):
        pytest.importorskip("duckdb_engine")
    engine = sqlalchemy.create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    asked = {
        "attributes": {
            "ssn": {"role": "identifier"},
            **{name: {"role": "quasi-identifier"} for name in ("age", "zipcode", "sex")},
            "disease": {"role": "sensitive"},
            "ward": {"role": "insensitive"},
        },
        "privacy": [{"model": "k-anonymity", "k": 5}],
    }
    release = anonymize(engine, asked, table="patients")
    assert release.result.verified
    assert list(release.df().columns) == ["age", "zipcode", "sex", "disease", "ward"]
    assert query(database_url, "SELECT count(*) FROM sqlanon.runs") == [(1,)]
    assert release.result.run in release.report()


def test_types_of_kept_columns_survive() -> None:
    numbers = pd.array([None if i % 7 == 0 else 2**60 + i for i in range(ROWS)], dtype="Int64")
    kept = {
        "whole": numbers,
        "small": pd.Series(range(ROWS), dtype="int8"),
        "unsigned": pd.array([None if i % 9 == 0 else i for i in range(ROWS)], dtype="UInt16"),
        "yes": pd.array([None if i % 5 == 0 else i % 2 == 0 for i in range(ROWS)], dtype="boolean"),
        "half": [None if i % 4 == 0 else i / 2 for i in range(ROWS)],
        "code": pd.Categorical(["xyz"[i % 3] for i in range(ROWS)]),
        "grade": pd.Categorical(["low", "high"] * (ROWS // 2), ["low", "high"], ordered=True),
        "number": pd.Categorical([i % 3 for i in range(ROWS)]),
        "zoned": pd.date_range("2024-03-30", periods=ROWS, freq="h", tz="Europe/Berlin"),
        "plain": pd.date_range("2024-03-30", periods=ROWS, freq="h"),
        "money": pd.Series([Decimal(i) / 100 for i in range(ROWS)], dtype=object),
        "day": pd.Series([date(2024, 1, 1 + i % 9) for i in range(ROWS)], dtype=object),
        "huge": pd.Series([2**100 + i for i in range(ROWS)], dtype=object),
        "note": [None if i % 3 == 0 else f"n{i}" for i in range(ROWS)],
    }
    source = people(**kept)
    frame = require_protected(anonymize(source, policy(**dict.fromkeys(kept, "insensitive"))), source)
    assert dict(frame.dtypes[list(kept)]) == dict(source.dtypes[list(kept)])
    for name in kept:
        there, back = (Counter(None if pd.isna(value) else value for value in one[name]) for one in (source, frame))
        assert there == back, name


def test_whole_numbers_with_gaps_are_not_rounded_from_other_data() -> None:
    source = people(whole=pd.array([None if i % 7 == 0 else 2**60 + i for i in range(ROWS)], dtype="Int64"))
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT * FROM source")
    frame = anonymize(connection, policy(whole="insensitive"), table="people").df()
    assert sorted(frame["whole"].dropna()) == sorted(source["whole"].dropna())
    assert frame["whole"].isna().sum() == source["whole"].isna().sum()


def test_categories_are_sets_unless_they_are_ordered() -> None:
    texts = [["low", "high", "mid"][i % 3] for i in range(ROWS)]
    by = {"grade": "quasi-identifier"}
    plain = people(grade=pd.Categorical(texts))
    ordered = people(grade=pd.Categorical(texts, ["low", "mid", "high"], ordered=True))
    asked = {**policy(**by), "privacy": [{"model": "k-anonymity", "k": ROWS // 2}]}
    assert any(label.startswith("{") for label in anonymize(plain, asked).df()["grade"])
    assert all(label.startswith("[") for label in anonymize(ordered, asked).df()["grade"])


DATES = [date(2020, 1, 1 + i % 28) for i in range(ROWS)]
DATED: dict[str, Any] = {
    "source": {"file": "people.csv", "dates": ["%d.%m.%Y"]},
    "attributes": {
        "born": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "year"]}},
        "seen": {"role": "quasi-identifier"},
        "kept": {"role": "insensitive"},
        "at": {"role": "insensitive"},
    },
    "privacy": [{"model": "k-anonymity", "k": 5}],
}


def dated() -> Any:
    """Dates as texts of two forms, as moments at midnight, and in kept columns."""
    return pd.DataFrame(
        {
            "born": [f"{one:%d.%m.%Y}" for one in DATES],
            "seen": pd.to_datetime([str(one) for one in DATES]),
            "kept": [str(one) for one in DATES],
            "at": pd.to_datetime([str(one) for one in DATES]),
        }
    )


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_dates_as_texts_and_at_midnight_are_dates(library: str) -> None:
    """Kept columns stay as they were, and labels show no time of day."""
    frame = dated()
    if library != "pandas":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    if library == "polars":
        frame = pytest.importorskip("polars").from_arrow(frame)
    with anonymize(frame, DATED) as release:
        rows = release.arrow().to_pylist()
    assert {row["born"] for row in rows} <= {"2020-01", "2020", *map(str, DATES)}
    assert all(re.fullmatch(r"\[?2020-01-\d\d(-2020-01-\d\d\])?", row["seen"]) for row in rows)
    assert Counter(row["kept"] for row in rows) == Counter(map(str, DATES))
    assert {type(row["at"]).__name__ for row in rows} <= {"datetime", "Timestamp"}


def test_one_time_of_day_leaves_moments_as_they_are() -> None:
    frame = dated().assign(seen=pd.to_datetime(["2020-01-01 00:00:01", *(f"{one} 00:00:00" for one in DATES[1:])]))
    with anonymize(frame, DATED) as release:
        assert any("00:00:00" in label for label in release.df()["seen"])


def test_texts_that_are_not_all_dates_and_categories_stay_texts() -> None:
    policy = {**DATED, "attributes": {**DATED["attributes"], "born": {"role": "quasi-identifier"}}}
    for born in (["?", *(str(one) for one in DATES[1:])], pd.Categorical([str(one) for one in DATES])):
        with anonymize(dated().assign(born=born), policy) as release:
            assert not any(label.startswith("[") for label in release.df()["born"])  # no range, but a set


def test_a_policy_drafted_from_a_csv_fits_the_frame_that_pandas_reads(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    frame = dated().assign(ill=["flu", "cold", "none"] * (ROWS // 3), age=[20 + i * 7 % 40 for i in range(ROWS)])
    frame.to_csv(file, index=False)
    text = sqlanon.draft_policy(None, str(file))
    with anonymize(pd.read_csv(file), text) as release, anonymize(str(file), text) as of_file:
        assert release.result.release.classes == of_file.result.release.classes
        assert list(release.df()["seen"]) == list(of_file.df()["seen"])


def test_a_release_knows_its_labels() -> None:
    with anonymize(dated(), DATED) as release:
        assert release.labels == {"born": "date", "seen": "date"}
        read = sqlanon.read_labels(release)
        assert read.equals(sqlanon.read_labels(release.df(), release.labels))
        assert read.equals(sqlanon.read_labels(release.df()))
        assert "born_min" not in sqlanon.read_labels(release.df().drop(columns="born"))
    with pytest.raises(PolicyError, match="name them"):
        sqlanon.read_labels(dated())


def test_the_index_does_not_leave() -> None:
    source = people().set_index(pd.Index(range(1000, 1000 + ROWS), name="person"))
    frame = anonymize(source, POLICY).df()
    assert "person" not in frame.reset_index().columns
    assert list(frame.index) == list(range(ROWS))


REFUSED = {
    "mixed": (lambda: people(x=pd.Series([1, "a"] * (ROWS // 2), dtype=object)), "'x' holds values of mixed types"),
    "late": (lambda: people(x=pd.Series([*["a"] * (ROWS - 1), 1], dtype=object)), "'x' holds values of mixed types"),
    "period": (lambda: people(x=pd.period_range("2024-01", periods=ROWS, freq="M")), "'x' is of type period"),
    "interval": (lambda: people(x=pd.cut(range(ROWS), 3)), "'x' is of type category"),
    "complex": (lambda: people(x=[1j] * ROWS), "'x' is of type complex"),
    "nanoseconds": (
        lambda: people(x=pd.date_range("2024-01-01", periods=ROWS, freq="7ns", tz="UTC", unit="ns")),
        "round",
    ),
    "case": (lambda: people(AGE=1), "'age', 'AGE' have the same name"),
    "number": (lambda: people().rename(columns={"ill": 3}), "The column 3 has no text as its name"),
    "empty": (lambda: pd.DataFrame(), "no columns"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_be_changed_is_refused(make: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        anonymize(make(), policy(x="insensitive"))


def test_what_is_no_data_is_refused() -> None:
    with pytest.raises(PolicyError, match="type dict is not known"):
        anonymize({"a": [1]}, POLICY)
    with pytest.raises(PolicyError, match="names no table"):
        anonymize(duckdb.connect(), POLICY)
    with pytest.raises(PolicyError, match="leave `table` out"):
        anonymize(people(), POLICY, table="people")
    with pytest.raises(PolicyError, match="no table"):
        anonymize(duckdb.connect(), POLICY, table="people")
    with pytest.raises(PolicyError, match="wardd"):
        anonymize(people(ward=1), policy(wardd="insensitive"))
    with pytest.raises(ProtectionError):
        anonymize(people(), {**POLICY, "privacy": [{"model": "distinct-l-diversity", "attribute": "ill", "l": 4}]})


def test_a_release_that_fails_its_check_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise VerificationError("The staged release failed its check.")

    monkeypatch.setattr(equivalence_classes, "check_release", fails)
    with pytest.raises(VerificationError):
        anonymize(people(), POLICY)


def test_public_names_are_listed() -> None:
    assert {name for name in dir(sqlanon) if not name.startswith("__")} == set(sqlanon.__all__) - {"__version__"}
    assert set(sqlanon.__all__) <= set(dir(sqlanon))


def test_the_snippets_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(snippet, names)  # the page is the project's own
    assert Path("report.html").stat().st_size > 10_000
    assert "k is 5, but" in capsys.readouterr().out


def test_a_database_in_memory_is_found_by_its_name_while_it_is_open() -> None:
    url = "duckdb:///:memory:shared"
    with duckdb.connect(":memory:shared"):
        execute(url, "CREATE TABLE t AS SELECT 1 AS a")
        assert query(url, "SELECT a FROM t") == [(1,)]
