"""The check that regions cover the rows that went to them, carried out in whatever session holds these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.sql import Identifier, Relation
from sqlanon.verification.release_checks import Claims, ReleasedRegion, regions_contain


@dataclass(frozen=True)
class CoveredRows:
    """The claims of a staged release, whose rows lack what their classes show, and the regions to hold against them."""

    claims: Claims
    regions: Sequence[ReleasedRegion]

    def __call__(self, engine: Engine) -> int:
        """Count the cells that are not true, by statements of this session."""
        return regions_contain(engine, self.claims, self.regions)

    def with_rows(self, engine: Engine, rows: int) -> int:
        """Count them in the session that holds the rows, of which there are so many; what classes show goes along."""
        claims, ladders = self.claims, (region.hierarchy for region in self.regions)
        lines = [ladder.lines for ladder in ladders if ladder is not None and ladder.lines is not None]
        columns = [Identifier("leaf"), *(Identifier(region.raw) for region in self.regions)]
        assert isinstance(claims.rows, Relation)
        return engine.measure_with_rows([claims.classes, *lines], [claims.rows], columns, rows, self)
