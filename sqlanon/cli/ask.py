"""ask: a question about the source of a policy, which is answered or denied; ask-script: a function for analysts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call, Panel, PolicyFile, command
from sqlanon.cli.deferred import ask, ask_function, ask_with_noise, codec, loading
from sqlanon.support.roles import Roles

if TYPE_CHECKING:
    from sqlanon.inquiries.questions.ask_with_noise import NoisyAnswer

_NAMES = Roles()
_Text = Annotated[
    str,
    typer.Argument(
        metavar="QUESTION",
        help="Such as \"avg(income) where age between 30 and 39 and job = 'nurse'\"; sum and count are asked alike.",
    ),
]


_Epsilon = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Answer a count or a sum with noise, of a policy of differential privacy, and charge its budget so much.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "ask", Panel.RELEASE, limits=True)(ask_command)
    command(app, "ask-script", Panel.UPKEEP, as_json=False)(ask_script_command)


def ask_command(call: Call, policy: PolicyFile, question: _Text, epsilon: _Epsilon = None) -> None:
    """Answer a question about the policy's source, unless answers together could tell of fewer than k persons.

    What was answered is kept in the catalog. Conditions are on quasi-identifiers: =, <, <=, >, >=, between, in, joined
    by and. docs/output.md says what is denied, and what a denial tells.
    """
    wanted = loading.load_policy(policy)
    if epsilon is not None:
        noisy = ask_with_noise.ask_with_noise(wanted, question, epsilon, call.options)
        _tell(call, noisy, _noisy_text(noisy))
        return
    answer = ask.ask(wanted, question, call.options)
    _tell(call, answer, f"{answer.question} = {answer.value}")
    if answer.warning is not None and not call.json:
        call.note(f"Warning: {answer.warning}")


def ask_script_command(
    call: Call,  # noqa: ARG001 - every command has one
    policy: PolicyFile = HERE,
    name: Annotated[str, typer.Option(metavar="SCHEMA.NAME", help="Name of the function.")] = "questions.ask",
    runner: Annotated[
        str, typer.Option(help="Role of policies and their catalog, as of grant-script.")
    ] = _NAMES.runner,
    analyst: Annotated[str, typer.Option(help="Role that may ask.")] = _NAMES.analyst,
    python: Annotated[
        Path | None,
        typer.Option(help="The Python that sqlanon is installed for on the database's server; if not given, this one."),
    ] = None,
) -> None:
    """Print a function of PostgreSQL that asks as `ask` does, for a DBA to read and run; nothing is changed.

    Who may call it needs no right on the table. It is in PL/Python, starts sqlanon on the database's server, and
    answers in JSON. Print it there, or with the server's paths. docs/output.md says what it relies on.
    """
    interpreter = Path(sys.executable) if python is None else python
    wanted = ask_function.AskFunction(name, runner, analyst, policy.absolute(), interpreter)
    print(ask_function.ask_function_script(loading.load_policy(policy), wanted))


def _noisy_text(answer: NoisyAnswer) -> str:
    return (
        f"{answer.question} = {answer.value}, of {answer.unit},"
        f" with noise of at most {answer.within} in 95 of 100 cases\n"
        f"  {answer.epsilon} of budget {answer.ledger} consumed, {answer.left} left"
    )


def _tell(call: Call, answer: object, text: str) -> None:
    if call.json:
        call.emit(codec.to_json(answer))
    else:
        print(text)
