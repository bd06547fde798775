"""What the parts of a policy have in common: frozen values, and no key that the grammar lacks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Whole = Annotated[int, Field(strict=True, le=2**63 - 1)]  # what every engine takes
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Part(BaseModel):
    """A part of a policy; its fields' docstrings are the text of the reference."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def broken(rule: str) -> PydanticCustomError:
    """A rule between the keys of one part is broken; `rule` is the sentence that says so."""
    return PydanticCustomError("rule", "{sentence}", {"sentence": rule})
