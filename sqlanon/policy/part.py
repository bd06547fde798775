"""The common base of a policy's parts: frozen values, and no key that the grammar lacks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from sqlanon.support.environment import Expanded

Whole = Annotated[int, Field(strict=True, le=2**63 - 1)]  # what every engine takes
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


def _keep_written(value: object, check: ValidatorFunctionWrapHandler) -> str:
    """Keep what an expanded text was written as, which pydantic's own texts don't."""
    return value if isinstance(value, Expanded) else str(check(value))


Reference = Annotated[str, WrapValidator(_keep_written)]  # a text in which `${NAME}` stands for a variable


class Part(BaseModel):
    """A part of a policy; its fields' docstrings are the text of the reference."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def broken(rule: str) -> PydanticCustomError:
    """A rule between the keys of one part is broken; `rule` is the sentence that says so."""
    return PydanticCustomError("rule", "{sentence}", {"sentence": rule})


def different(given: object, least: int, most: int) -> tuple[str, ...] | None:
    """Take the texts of different values; None for None."""
    if given is None:
        return None
    texts = texts_of(given) or []
    if not least <= len(texts) == len(set(texts)) <= most:
        raise broken(f"must be a list of {least} to {most:,} different values.")
    return tuple(texts)


def texts_of(given: object) -> list[str] | None:
    """Write a list of texts, numbers and truth values as texts; None where it is something else."""
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, (str, int, float)) for one in given):
        return None
    return [_text_of(one) for one in given]


def _text_of(given: object) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)
