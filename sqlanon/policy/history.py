"""The account of releases about the same people, as a policy asks for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sqlanon.policy.part import Part, Whole, broken

Wait = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4} (hours?|days?|weeks?)$")]


class HistorySection(Part):
    """The account of the releases about the same people; see docs/several-releases.md."""

    mode: Literal["none", "watch", "refresh", "increments"] = "none"
    """The use of the account. `none`: no account is kept. `watch`: releases and answers are entered, with a warning
    where together they tell too few persons from all others. `refresh`: they are entered, and such a release or answer
    is refused. `increments`: as `refresh`, and each run adds the persons who came, as a batch that satisfies the models
    by itself; rows that are released stay as they are. All but `none` need a `subject` that the release does not show,
    with one row a person."""
    k: Whole | None = Field(None, ge=2)
    """The least number of persons of each group that is in the same classes in all releases. If not given: the largest
    k of the models."""
    batch: Whole | None = Field(None, ge=1)
    """Increments: the least number of persons who make a batch; fewer wait for others. If not given: as many as the
    models need."""
    hold: Wait | None = None
    """Increments: the longest time that persons wait for a batch to fill, counted from the batch before, such as `90
    days`. If not given: until the batch is full."""
    departures: Literal["keep", "retract", "erase"] = "keep"
    """Increments: what becomes of the rows of persons who are in the source no more. `keep`: these stay in the release.
    `retract`: they leave as soon as so many of a class leave together that these satisfy k and the models, and so do
    the rows that stay. `erase`: they leave at once, with the rows of all others of their class. Nobody whose row has
    left is in a later batch."""

    @property
    def is_kept(self) -> bool:
        """Tell whether releases are entered in an account."""
        return self.mode != "none"

    @property
    def adds(self) -> bool:
        """Tell whether a run adds rows to a release, and leaves those that are there."""
        return self.mode == "increments"

    @property
    def lets_go(self) -> bool:
        """Tell whether rows of persons who have left the source leave the release."""
        return self.departures != "keep"

    @property
    def longest_wait(self) -> timedelta | None:
        """Return how long persons wait for a batch to fill; None for any time."""
        if self.hold is None:
            return None
        number, unit = self.hold.split()
        return timedelta(**{unit.removesuffix("s") + "s": int(number)})

    @model_validator(mode="after")
    def _of_increments(self) -> HistorySection:
        if not self.adds and (self.batch is not None or self.hold is not None or self.lets_go):
            raise broken("has batch, hold or departures, which mode: increments alone has.")
        if self.hold is not None and self.batch is None:
            raise broken("has hold without batch, so that nothing would wait.")
        return self
