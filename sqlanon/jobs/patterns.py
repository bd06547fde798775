"""Sentences of the program that a procedure completes with what it comes to know."""

from __future__ import annotations

from collections.abc import Callable

from sqlanon.sql import Text

_HERE = "\0"  # in a sentence where a text belongs; no name holds it


def pattern(message: Callable[..., str], places: int = 1) -> Text:
    """Write a sentence as a pattern of PostgreSQL's `format`, with the texts that it takes left open.

    message: the sentence of as many texts as there are `places`, nine at most.
    """
    texts = {f"{_HERE}{place}": f"%{place}$s" for place in range(1, places + 1)}
    sentence = message(*texts).replace("%", "%%")
    for open_place, number in texts.items():
        sentence = sentence.replace(open_place, number)
    return Text(sentence)
