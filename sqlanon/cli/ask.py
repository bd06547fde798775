"""ask: a question about the source of a policy, which is answered or denied."""

from __future__ import annotations

from typing import Annotated

import typer

from sqlanon.cli.call import Call, Panel, PolicyFile, command
from sqlanon.cli.deferred import asking, codec, loading

_Text = Annotated[
    str,
    typer.Argument(
        metavar="QUESTION",
        help="Such as \"avg(income) where age between 30 and 39 and job = 'nurse'\"; sum and count are asked alike.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "ask", Panel.RELEASE, limits=True)(ask_command)


def ask_command(call: Call, policy: PolicyFile, question: _Text) -> None:
    """Answer a question about the policy's source, unless answers together could tell of fewer than k persons.

    What was answered is kept in the catalog. Conditions are on quasi-identifiers: =, <, <=, >, >=, between, in, joined
    by and. docs/output.md says what is denied, and what a denial tells.
    """
    answer = asking.ask(loading.load_policy(policy), question, call.options)
    if call.json:
        call.emit(codec.to_json(answer))
    else:
        print(f"{answer.question} = {answer.value}")
