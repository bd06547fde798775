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
