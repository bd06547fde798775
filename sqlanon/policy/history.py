"""The account of releases about the same people, as a policy asks for it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sqlanon.policy.part import Part, Whole


class HistorySection(Part):
    """The account of the releases about the same people; see docs/several-releases.md."""

    mode: Literal["none", "watch", "refresh"] = "none"
    """The use of the account. `none`: no account is kept. `watch`: releases and answers are entered, with a warning
    where together they tell too few persons from all others. `refresh`: they are entered, and such a release or answer
    is refused. Both need a `subject` that the release does not show, with one row a person."""
    k: Whole | None = Field(None, ge=2)
    """The least number of persons of each group that is in the same classes in all releases. If not given: the largest
    k of the models."""

    @property
    def is_kept(self) -> bool:
        """Tell whether releases are entered in an account."""
        return self.mode != "none"
