"""The grammar of questions: read, written and read again; anything else is refused where reading stops."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.errors import PolicyError
from sqlanon.inquiries.questions.question import Aggregate, Comparator, Condition, Question, parse_question
from tests.random_cases import many

constants = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-999999, max_value=999999),
    st.text(max_size=8).filter(lambda text: "\x00" not in text),
    st.booleans(),
)
names = st.text(min_size=1, max_size=8).filter(lambda name: "\x00" not in name)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    aggregate = draw(st.sampled_from(Aggregate))
    conditions = []
    for _ in range(draw(st.integers(0, 3))):
        test = draw(st.sampled_from(Comparator))
        count = {Comparator.BETWEEN: 2, Comparator.IN: draw(st.integers(1, 3))}.get(test, 1)
        conditions.append(Condition(draw(names), test, tuple(draw(constants) for _ in range(count))))
    return Question(aggregate, None if aggregate is Aggregate.COUNT else draw(names), tuple(conditions))


@settings(max_examples=many(300), deadline=None)
@given(questions())
def test_a_question_reads_as_it_is_written(question: Question) -> None:
    assert parse_question(str(question)) == question


def test_a_question_is_read() -> None:
    assert parse_question("SUM(income) where age between 30 and 39 AND job in ('nurse', 'd''or') and x<=-1.5") == (
        Question(
            Aggregate.SUM,
            "income",
            (
                Condition("age", Comparator.BETWEEN, (Decimal(30), Decimal(39))),
                Condition("job", Comparator.IN, ("nurse", "d'or")),
                Condition("x", Comparator.AT_MOST, (Decimal("-1.5"),)),
            ),
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "income",
        "sum(*)",
        "count(income)",
        "sum(income",
        "median(income)",
        "sum(income) where",
        "sum(income) where age",
        "sum(income) where age = ",
        "sum(income) where age = 30 or age = 31",
        "sum(income) where age = 30; drop table people",
        "sum(income) where age = 30 -- ",
        "sum(income) where age <> 30",
        "sum(income) where not age = 30",
        "sum(income) where (age = 30)",
        "sum(income) where age = income",
        "sum(income) where age in ()",
        "sum(income) where age = 30e5",
        "sum(income) where job = 'nurse",
        "sum(income + 1)",
        "sum(income) where age between 1 or 2",
        'sum("") where age = 1',
        "count(*) where age = 1" + " and age = 1" * 2_000,
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        parse_question(text)


@settings(max_examples=many(200), deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        question = parse_question(text)
    except PolicyError:
        return
    assert parse_question(str(question)) == question
