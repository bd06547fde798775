"""ask: a question about the source of a policy, which is answered or denied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import Call, Panel, PolicyFile, command
from sqlanon.cli.deferred import asking, asking_with_noise, codec, loading

if TYPE_CHECKING:
    from sqlanon.runs.asking_with_noise import NoisyAnswer

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
    """Add the command."""
    command(app, "ask", Panel.RELEASE, limits=True)(ask_command)


def ask_command(call: Call, policy: PolicyFile, question: _Text, epsilon: _Epsilon = None) -> None:
    """Answer a question about the policy's source, unless answers together could tell of fewer than k persons.

    What was answered is kept in the catalog. Conditions are on quasi-identifiers: =, <, <=, >, >=, between, in, joined
    by and. docs/output.md says what is denied, and what a denial tells.
    """
    wanted = loading.load_policy(policy)
    if epsilon is not None:
        noisy = asking_with_noise.ask_with_noise(wanted, question, epsilon, call.options)
        _tell(call, noisy, _noisy_text(noisy))
        return
    answer = asking.ask(wanted, question, call.options)
    _tell(call, answer, f"{answer.question} = {answer.value}")


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
