"""The publisher of each engine."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import load_part
from sqlanon.publish.base import Publisher, Record, nothing


def publisher_of(engine: Engine, record: Record = nothing) -> Publisher:
    """Make the publisher on this engine; see `Publisher` for `record`."""
    publisher: Publisher = load_part(engine.traits.publisher)(engine, record)
    return publisher
