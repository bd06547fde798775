"""Questions on both engines: answers are right, and answers together tell of no few persons."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.errors import ConflictError, EngineError, PolicyError, ProtectionError
from sqlanon.inquiries.questions import ask as asking
from sqlanon.inquiries.questions import question_audit as auditing
from sqlanon.inquiries.questions.ask import ask
from sqlanon.inquiries.questions.axes import TypedCondition, spans_of
from sqlanon.inquiries.questions.question import parse_question
from sqlanon.inquiries.questions.question_audit import AskedTable
from sqlanon.inquiries.questions.row_space import SumVerdict
from sqlanon.policy import Policy
from sqlanon.sql import Relation, Statement
from tests.inquiries.questions.linear import follows, learns, tells_of_few
from tests.oracle.mutants import mutated
from tests.random_cases import many
from tests.run_support import OPTIONS, Database, open_database

pytestmark = pytest.mark.slow

ROLES = {"age": "quasi-identifier", "job": "quasi-identifier", "income": "sensitive"}
COLUMNS = {"age": "INTEGER", "job": "TEXT", "income": "INTEGER"}
ROWS: list[tuple[Any, ...]] = [(30, "cook", 7), (31, "nurse", 11), (32, "nurse", 13), (33, "cook", 17)]
ROWS += [(34, None, 19), (35, "nurse", 23), (36, "cook", 29), (None, "cook", 31)]


def policy_of(database: Database, table: str, k: int = 2, **more: Any) -> Policy:
    return database.policy(table, more.pop("roles", ROLES), privacy=[{"model": "k-anonymity", "k": k}], **more)


def answer(policy: Policy, text: str) -> str | None:
    """The answer; None where the question is denied."""
    try:
        return ask(policy, text, OPTIONS).value
    except ProtectionError:
        return None


class Attacker:
    """Somebody who knows all quasi-identifiers and the total, asks, and adds up."""

    def __init__(self, policy: Policy, rows: Sequence[tuple[Any, ...]]) -> None:
        self.policy = policy
        self.rows = rows
        self.known: list[set[int]] = [set(range(len(rows)))]

    def asks(self, condition: str, members: set[int], aggregate: str = "sum") -> bool:
        """Ask, and hold the answer against the rows."""
        got = answer(self.policy, f"{aggregate}(income) where {condition}")
        if got is None:
            return False
        total = sum(self.rows[one][2] for one in members)
        right = total if aggregate == "sum" else Fraction(total, len(members))
        assert abs(Fraction(got) - right) <= Fraction(right, 10**11)
        self.known.append(members)
        return True

    def among(self, ages: set[int], aggregate: str = "sum") -> bool:
        listed = ", ".join(map(str, sorted(ages)))
        members = {place for place, row in enumerate(self.rows) if row[0] in ages}
        return self.asks(f"age in ({listed})", members, aggregate)

    def learns(self, k: int = 2) -> list[tuple[int, ...]]:
        return learns(self.known, len(self.rows), k)


def conditions() -> list[tuple[str, set[int]]]:
    """All questions of a kind, with the rows that each is about."""
    asked = []
    for low, high in itertools.combinations(range(30, 38), 2):
        members = {place for place, row in enumerate(ROWS) if row[0] is not None and low <= row[0] < high}
        asked.append((f"age >= {low} and age < {high}", members))
        asked.append(
            (f"age between {low} and {high - 1} and job = 'cook'", {p for p in members if ROWS[p][1] == "cook"})
        )
    asked.append(("job in ('nurse', 'smith')", {p for p, row in enumerate(ROWS) if row[1] == "nurse"}))
    return asked


@pytest.mark.either_engine
@settings(max_examples=many(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(range(len(conditions()))), min_size=4, max_size=9), st.integers(2, 3))
def test_answers_tell_of_no_few_persons(database: Database, places: list[int], k: int) -> None:
    """The answers are right, each denial is by the rules, and no group of fewer than k is known by its sum."""
    attacker = Attacker(policy_of(database, database.create(COLUMNS, ROWS), k), ROWS)
    answered = 0
    for place in places:
        condition, members = conditions()[place]
        answered += attacker.asks(condition, members, "sum" if place % 3 else "avg")
        assert attacker.learns(k) == []


def test_trackers_learn_nobodys_value(database: Database) -> None:
    """Denning, Denning, Schwartz, ACM TODS 4(1), 1979: padding a question that is about one person alone.

    The person is of the age 33. Each tracker's last question would tell the value.
    """
    whole = {30, 31, 32, 33, 34, 35, 36}
    individual = [whole - {30}, whole - {30, 33}]
    general = [{30, 31, 32, 33}, {34, 35, 36, 33}, {30, 31, 32}, {34, 35, 36}]  # C or T, C or not T, T, not T
    double = [
        {34, 35},
        {33, 30, 31},
        {30, 31},
        {34, 35},
    ]  # U, C or T, T, (C and T) or U, where T lies in U's complement
    for tracker in (individual, general, double):
        attacker = Attacker(policy_of(database, database.create(COLUMNS, ROWS)), ROWS)
        answers = [attacker.among(ages) for ages in tracker]
        assert False in answers
        assert attacker.learns() == []


def test_sizes_of_sets_have_bounds(database: Database) -> None:
    policy = policy_of(database, database.create(COLUMNS, ROWS), 3)
    for text in ("sum(income)", "count(*) where age <= 31", "count(*) where age >= 30 and job = 'smith'"):
        assert answer(policy, text) is None
    assert answer(policy, "count(*) where age >= 30 and age <= 35") is None  # all but two
    assert answer(policy, "count(*) where age between 32 and 34") == "3"
    assert answer(policy, "avg(income) where age between 32 and 34") == "16.3333333333"


def test_a_history_outlives_its_session_and_ends_with_the_table(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = policy_of(database, table)
    assert ask(policy, "sum(income) where age <= 33", OPTIONS).number == 1
    assert ask(policy, "sum(income) where age <= 33", OPTIONS).number == 2
    assert answer(policy, "sum(income) where age <= 32") is None
    database.sql(f"UPDATE {table} SET income = income + 1 WHERE age = 30")
    with pytest.raises(ProtectionError, match="no longer what earlier questions"):
        ask(policy, "sum(income) where age <= 33", OPTIONS)
    database.sql(f"UPDATE {table} SET income = income - 1 WHERE age = 30")
    assert answer(policy, "sum(income) where age <= 33") == "48"
    database.sql(f"ALTER TABLE {table} RENAME TO {table}_new")
    database.sql(f"CREATE TABLE {table} AS SELECT * FROM {table}_new WHERE age <> 33")
    with pytest.raises(ProtectionError, match="no longer what earlier questions"):
        ask(policy, "sum(income) where age <= 33", OPTIONS)


def test_a_history_with_a_gap_answers_nothing(database: Database) -> None:
    policy = policy_of(database, database.create(COLUMNS, ROWS))
    for text in ("sum(income) where age <= 33", "sum(income) where age <= 31"):
        ask(policy, text, OPTIONS)
    database.sql("DELETE FROM sqlanon.questions WHERE number = 1")
    with pytest.raises(ProtectionError, match="history of questions is damaged"):
        ask(policy, "sum(income) where age <= 32", OPTIONS)


def test_nothing_is_answered_that_is_not_written(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(database, database.create(COLUMNS, ROWS))
    ask(policy, "sum(income) where age <= 33", OPTIONS)
    looked: list[object] = []

    def fail(*_: object) -> None:
        raise EngineError("The catalog could not write down the question, so that it was not answered: disk full")

    monkeypatch.setattr(Catalog, "write_question", fail)
    monkeypatch.setattr(asking._Asking, "_value", looked.append)
    with pytest.raises(EngineError, match="was not answered"):
        ask(policy, "sum(income) where age <= 31", OPTIONS)
    assert looked == []


def test_of_two_questions_at_once_one_is_denied(database: Database) -> None:
    """Both are harmless alone; together they tell one value."""
    policy = policy_of(database, database.create(COLUMNS, ROWS))
    ask(policy, "count(*) where age <= 33", OPTIONS)
    answers: list[str | None] = []
    barrier = threading.Barrier(2)

    def work(text: str) -> None:
        barrier.wait()
        for _ in range(50):
            try:
                answers.append(answer(policy, text))
                return
            except (EngineError, ConflictError):  # DuckDB refuses a second session of another kind
                continue

    texts = ("sum(income) where age <= 33", "sum(income) where age <= 32")
    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 2
    assert answers.count(None) == 1


def test_a_share_of_the_tuples_decides_as_all_do(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a share of the rows there are as many tuples as are needed; without it the decisions are the same."""
    rows = [(30 + n % 97, ["cook", "nurse", None][n % 3], n) for n in range(291)]
    asked = [f"age between {low} and {high}" for low, high in [(30, 60), (30, 61), (40, 90), (35, 99), (40, 91)]]
    asked += ["job = 'cook'", "age >= 50 and job = 'nurse'"]
    looked: list[int] = []
    cells = auditing._cells

    def counted(*arguments: Any) -> Any:
        looked.append(arguments[4] if len(arguments) > 4 else 1)
        return cells(*arguments)

    monkeypatch.setattr(auditing, "_cells", counted)
    monkeypatch.setattr(auditing, "block_width", lambda rows: rows)
    decided = []
    for spare in (1, 10_000):
        monkeypatch.setattr(auditing, "_SPARE_TUPLES", spare)
        policy = policy_of(database, database.create(COLUMNS, rows), 4)
        decided.append([answer(policy, f"sum(income) where {one}") for one in asked])
        looked.append(0)
    assert decided[0] == decided[1]
    assert [one is None for one in decided[0][:2]] == [False, True]  # three persons are of the age 61
    first, second = looked[: looked.index(0)], looked[looked.index(0) :]
    assert max(first) > 1 >= max(second)


@pytest.mark.parametrize("some", [1, 3])
def test_all_tuples_are_looked_at_only_where_some_are_larger(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, some: int
) -> None:
    """The sum follows from two on a further column, so that neither a share nor its own columns decide.

    some: persons of each fifth age.
    """
    monkeypatch.setattr(auditing, "block_width", lambda rows: rows)
    monkeypatch.setattr(auditing, "most_columns", lambda _: 10)
    cells, divisors = auditing._cells, list[int]()

    def counting(*arguments: Any) -> Any:
        divisors.append(arguments[4] if len(arguments) > 4 else 1)
        return cells(*arguments)

    monkeypatch.setattr(auditing, "_cells", counting)
    engine.execute(Statement("make", "CREATE TEMP TABLE answered (age INTEGER, job TEXT, income INTEGER)"))
    rows = [(age, "cook", age) for age in range(400) for _ in range(1 if age % 5 else some)]
    engine.load(Relation("answered"), ["age", "job", "income"], rows)
    table = AskedTable(engine, Relation("answered"), None, 2)
    low, high = (f"age in ({', '.join(map(str, range(start, start + 200)))})" for start in (0, 200))
    texts = [f"{low} and job = 'cook'", f"{low} and job = 'nurse'", f"{high} and job = 'cook'", low]
    columns = engine.columns(table.source)
    known = [spans_of(parse_question(f"count(*) where {text}"), columns, ["age", "job"]) for text in texts]
    assert auditing.audit(table, known[:-1], known[-1], len(rows)) is SumVerdict.DENIED
    share, *others = divisors
    assert share > 1
    assert others == [1] * (1 if some == 1 else 2)


def test_a_share_may_have_no_tuple(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a large table whose tuples are few: the hashes of all miss the share."""
    monkeypatch.setattr(auditing, "block_width", lambda rows: rows)
    monkeypatch.setattr(auditing, "_SPARE_TUPLES", 1)
    monkeypatch.setattr(auditing, "_SPARE_BLOCKS", -1)
    rows = [(30, ["cook", "nurse"][number % 2], number) for number in range(40)]
    policy = policy_of(database, database.create(COLUMNS, rows))
    assert answer(policy, "sum(income) where job = 'cook'") == "380"


def require_right(engine: Engine, k: int, seed: int) -> list[tuple[SumVerdict, bool]]:
    """Audit a sequence of questions on one column or on both; the verdicts, with what follows in fractions."""
    asked = AskedTable(engine, Relation("answered"), None, k)
    columns, draw = engine.columns(asked.source), random.Random(seed)
    known: list[tuple[TypedCondition, ...]] = []
    sums: list[set[int]] = [set(range(len(ROWS)))]
    verdicts = []
    for condition, members in draw.sample(BY_ONE, 14):
        spans = spans_of(parse_question(f"count(*) where {condition}"), columns, ["age", "job"])
        verdict = auditing.audit(asked, known, spans, len(ROWS))
        verdicts.append((verdict, follows([*sums, members], len(ROWS))))
        if verdict is SumVerdict.NEW:
            assert not tells_of_few([*sums, members], len(ROWS), k)
            known.append(spans)
            sums.append(members)
    assert all(in_fact for verdict, in_fact in verdicts if verdict is SumVerdict.FOLLOWS)
    return verdicts


BY_ONE = [
    *conditions(),
    *((f"age in ({a}, {b})", {a - 30, b - 30}) for a, b in itertools.combinations(range(30, 37), 2)),
    ("job = 'cook'", {0, 3, 6, 7}),
    ("job = 'nurse'", {1, 2, 5}),
    ("job in ('cook', 'nurse')", {0, 1, 2, 3, 5, 6, 7}),
]


@pytest.mark.parametrize("most", [50_000, 7])
def test_sums_on_the_columns_of_a_question_decide_rightly(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """All that follows from sums on the same columns is known to follow, though all cells are too many."""
    engine.execute(Statement("make", "CREATE TEMP TABLE answered (age INTEGER, job TEXT, income INTEGER)"))
    engine.load(Relation("answered"), ["age", "job", "income"], ROWS)
    monkeypatch.setattr(auditing, "_MOST_CELLS", most)

    def check() -> list[tuple[SumVerdict, bool]]:
        return [one for seed in (1, 3) for one in require_right(engine, 2, seed)]

    following = [verdict for verdict, in_fact in check() if in_fact]
    assert SumVerdict.FOLLOWS in following
    assert SumVerdict.NEW not in following
    if most < len(ROWS):
        return
    assert set(following) == {SumVerdict.FOLLOWS}
    trusted = "verdict in (SumVerdict.FOLLOWS, SumVerdict.DENIED)"
    with mutated("sqlanon.inquiries.questions.question_audit:audit", trusted, "verdict"), pytest.raises(AssertionError):
        check()


def test_nothing_more_is_counted_where_some_cells_are_too_many(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The denial is that which comes of all cells; these are counted only where few enough may be left."""
    rows = [(30 + n % 7, "cook", n) for n in range(7)]
    cells, looked = auditing._cells, list[int | None]()

    def counting(*arguments: Any) -> Any:
        looked.append(arguments[2])
        return cells(*arguments)

    monkeypatch.setattr(auditing, "_cells", counting)
    for most, denied, all_looked_at in ((50_000, [False, True, False], 3), (3, [False, True, True], 1)):
        monkeypatch.setattr(auditing, "most_columns", lambda _rows, most=most: most)
        policy = policy_of(database, database.create(COLUMNS, rows), 2)
        looked.clear()
        assert [answer(policy, f"count(*) where age <= {age}") is None for age in (31, 32, 33)] == denied
        assert looked.count(None) == all_looked_at  # of the first question three cells


def test_persons_are_counted_not_rows(database: Database) -> None:
    columns = {"who": "INTEGER", "age": "INTEGER", "income": "INTEGER"}
    roles = {"who": "identifier", "age": "quasi-identifier", "income": "sensitive"}
    rows = [(who, 30 + who, 10 * who + number) for who in range(6) for number in range(3)]
    table = database.create(columns, rows)
    policy = policy_of(database, table, roles=roles, subject="who")
    assert answer(policy, "sum(income) where age = 31") is None  # three rows of one person
    assert answer(policy, "count(*) where age <= 32") == "9"
    assert answer(policy, "count(*) where age <= 31") is None
    database.insert(table, [(0, 39, 1)])
    with pytest.raises(PolicyError, match="subject: the rows of some person differ"):
        ask(policy, "count(*) where age <= 32", OPTIONS)


def test_rows_of_nobody_known_are_refused(database: Database) -> None:
    """They could be of anybody, so that nobody can tell how many persons an answer is about."""
    roles = {"who": "identifier", "age": "quasi-identifier", "income": "sensitive"}
    rows = [(who, 30 + who, 10 * who) for who in range(6)]
    table = database.create(dict.fromkeys(roles, "INTEGER"), [*rows, (None, 31, 5)])
    policy = policy_of(database, table, roles=roles, subject="who")
    with pytest.raises(PolicyError, match=r"subject: the rows of some person differ .* or are of nobody known"):
        ask(policy, "count(*) where age <= 33", OPTIONS)


@pytest.mark.parametrize(
    ("column", "constants"),
    [
        ("DECIMAL(6,2)", ["-1.50", "0", "2.25", "2.26"]),
        ("DOUBLE PRECISION", ["-1.5", "0.1", "2.25", "1e0"]),
        ("DATE", ["'1999-12-31'", "'2000-01-01'", "'2000-02-29'", "'2024-01-01'"]),
        ("BOOLEAN", ["true", "false", "true", "false"]),
        ("BIGINT", ["-9000000000", "0", "7", "9000000000"]),
    ],
)
def test_places_of_all_types_follow_the_database(database: Database, column: str, constants: list[str]) -> None:
    """The rows that a condition is about are counted twice: by the answer, and by the sizes of groups."""
    values = [*constants, None]
    rows = ", ".join(f"({'NULL' if one is None else one}, {n})" for n, one in enumerate(values * 4))
    table = database.create({"v": column, "n": "INTEGER"}, [])
    database.sql(f"INSERT INTO {table} VALUES {rows}")
    policy = policy_of(database, table, roles={"v": "quasi-identifier", "n": "sensitive"})
    one, other = [text.replace("1e0", "1") for text in constants][1:3]
    tests = [f"v = {one}", f"v in ({one}, {other})"]
    if column != "BOOLEAN":
        tests += [f"v <= {one}", f"v > {one}", f"v between {one} and {other}"]
    for test in tests:
        (right,) = database.sql(f"SELECT count(*) FROM {table} WHERE {test}")[0]
        assert answer(policy, f"count(*) where {test}") == str(right)


@pytest.mark.parametrize("column", ["CHAR(6)", "BPCHAR", "VARCHAR(6)", "TEXT"])
def test_texts_are_compared_as_the_database_does(database: Database, column: str) -> None:
    """Blanks at the end are none of a CHAR(n) of PostgreSQL, and a part of all other texts."""
    values = ["nurse", "nurse ", "cook", "  cook", "", " "]
    table = database.create({"job": column, "income": "INTEGER"}, [(one, 1) for one in values * 2])
    policy = policy_of(database, table, roles={"job": "quasi-identifier", "income": "sensitive"})
    for constant in (*values, "nurse   ", "cook  "):
        (right,) = database.sql(f"SELECT count(*) FROM {table} WHERE job = '{constant}'")[0]
        got = answer(policy, f"count(*) where job = '{constant}'")
        assert got == (str(right) if right >= 2 else None), constant
    (right,) = database.sql(f"SELECT count(*) FROM {table} WHERE job IN ('nurse', 'nurse  ', 'cook ')")[0]
    assert answer(policy, "count(*) where job in ('nurse', 'nurse  ', 'cook ')") == str(right)


def test_texts_without_an_equality_of_their_own_bytes_are_refused(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.sql("CREATE EXTENSION IF NOT EXISTS citext")
        database.sql("CREATE COLLATION lax (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        table = database.create({"job": "CITEXT", "town": "TEXT COLLATE lax", "income": "INTEGER"}, [("a", "b", 1)])
        roles = {"job": "quasi-identifier", "town": "quasi-identifier", "income": "sensitive"}
        for column in ("job", "town"):
            with pytest.raises(PolicyError, match=f"'{column}' has the type .*, which conditions are not on"):
                ask(policy_of(database, table, roles=roles), f"count(*) where {column} = 'a'", OPTIONS)


def hex_of(text: str) -> str:
    return hex(ord(text))


@pytest.mark.parametrize(
    "text", ["{bad}", "sum(income) where job = '{bad}'", 'sum("{bad}")', 'count(*) where "{bad}" = 1']
)
@pytest.mark.parametrize("bad", [chr(0xDC80), chr(0xD800), chr(0)], ids=hex_of)
def test_what_is_no_text_is_refused_in_a_sentence(database: Database, text: str, bad: str) -> None:
    policy = policy_of(database, database.create(COLUMNS, ROWS))
    with pytest.raises(PolicyError, match=r"^The question holds half a character .* or a NUL"):
        ask(policy, text.replace("{bad}", bad), OPTIONS)


def test_bad_questions_are_refused_before_anything_is_read(database: Database) -> None:
    table = database.create(COLUMNS | {"seen": "TIMESTAMP"}, [])
    policy = policy_of(database, table, roles=ROLES | {"seen": "quasi-identifier"})
    for text, words in {
        "max(income) where age > 30": "max is not answered",
        "sum(age) where age > 30": "no sensitive or insensitive column",
        "sum(salary) where age > 30": "no sensitive or insensitive column",
        "sum(income) where income > 30": "'income' is no quasi-identifier",
        "sum(income) where job > 'a'": "compare it by = or in",
        "sum(income) where age = 'x'": "write its values without quotes",
        "sum(income) where age = 30.5": "without a fraction",
        "sum(income) where age = 12345678901234567890": "at most 18 digits",
        "sum(income) where job = 3": "in single quotes",
        "sum(income) where seen = '2000-01-01'": "let questions be about a table",
    }.items():
        with pytest.raises(PolicyError, match=words):
            ask(policy, text, OPTIONS)
    small = database.policy(table, ROLES | {"seen": "quasi-identifier"}, privacy=[{"model": "k-anonymity", "k": 1}])
    with pytest.raises(PolicyError, match="questions need a k of 2"):
        ask(small, "count(*) where age > 3", OPTIONS)
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        assert catalog.history([f"table {table}"]) is None


def test_a_column_with_null_is_refused(database: Database) -> None:
    policy = policy_of(database, database.create(COLUMNS, [*ROWS, (37, "cook", None)]))
    with pytest.raises(PolicyError, match="'income' is NULL or no finite number"):
        ask(policy, "sum(income) where age <= 33", OPTIONS)


def test_spark_is_refused_before_it_starts() -> None:
    from sqlanon.policy.loading import build_policy

    policy = build_policy(
        {
            "source": {"url": "spark+local://1", "table": "people"},
            "release": {"table": "people_r"},
            "catalog": {"url": "duckdb:///c.duckdb"},
            "attributes": {name: {"role": role} for name, role in ROLES.items()},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    with pytest.raises(PolicyError, match="questions are not answered of tables on Spark"):
        ask(policy, "count(*) where age > 30")
