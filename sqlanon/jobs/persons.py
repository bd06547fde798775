"""Tests of rows for persons in a procedure: identifiers that did not repeat when it was made may repeat since."""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.plan.plan import Plan
from sqlanon.plan.subject import identifying
from sqlanon.sql import Expression, Identifier, Text, macro
from sqlanon.values.expressions import comparable


def repeat_tests(engine: Engine, plan: Plan) -> list[dict[str, Expression]]:
    """List tests over all rows `s` of the source that are true where an identifier may repeat, and what to say then.

    There are none if the policy declares its subject. A column that a constraint keeps unique is not read: the test is
    whether the constraint is still there.
    """
    if plan.policy.subject is not None:
        return []
    unique = engine.unique_columns(plan.source)
    return [
        {
            "test": _is_not_unique(engine, plan, column) if column.name in unique else _repeats(engine, column),
            "problem": Markup(Text(_problem(plan, column, column.name in unique))),
        }
        for column in identifying(plan.policy, engine.columns(plan.source))
    ]


def _repeats(engine: Engine, column: Column) -> Expression:
    value = comparable(engine, macro("codes.in_source", Identifier(column.name)), column.kind)
    return macro("jobs.repeats", value)


def _is_not_unique(engine: Engine, plan: Plan, column: Column) -> Expression:
    listing = engine.render("engines/list_unique_columns", table=Text(str(plan.source))).text
    return macro("jobs.has_lost", Text(column.name), Markup(listing))


def _problem(plan: Plan, column: Column, is_unique: bool) -> str:
    what = "lost its unique constraint, so that it may repeat" if is_unique else "repeats"
    return (
        f"Column '{column.name}' of {plan.source} {what}: rows are not persons then. Write `subject: none` into the"
        " policy to release rows nevertheless, run it again, and freeze that run."
    )
