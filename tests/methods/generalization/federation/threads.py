"""Sites of a federation as threads that exchange messages in memory, for what needs no network."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from sqlanon.errors import AccessError, SqlanonError
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.serving import release_together
from sqlanon.policy.loading import build_policy
from sqlanon.work.journal import Observer
from sqlanon.work.session import open_session
from tests.methods.generalization.federation.sites import Sites, random_rows
from tests.methods.generalization.federation.support import NAMES, WAITING
from tests.run_support import OPTIONS, duckdb_url

Tamper = Callable[[int, int, list[bytes]], list[bytes]]


class Room:
    """Sites that are connected by memory."""

    def __init__(self, sites: int | Sequence[str], tamper: Tamper | None = None, **plan: Any) -> None:
        """tamper: changes the messages of a site, given its place and the number of the exchange."""
        names = [f"site{number}" for number in range(sites)] if isinstance(sites, int) else sites
        listed = {name: {"address": f"h:{7000 + n}", "certificate": name} for n, name in enumerate(names)}
        self.plan = FederationPlan.model_validate({"sites": listed, **plan})
        self.tamper = tamper
        self.kept: dict[tuple[int, int], list[bytes]] = {}
        self.places = range(len(names))
        pairs = itertools.product(self.places, repeat=2)
        self.boxes: dict[tuple[int, int], Queue[bytes | None]] = {pair: Queue() for pair in pairs}  # before any thread

    def run(self, work: Callable[[Party], Any]) -> list[Any]:
        """Let every site do its part; what each came to, which may be an error."""
        parties = [_Party(self, place) for place in self.places]
        with ThreadPoolExecutor(len(parties)) as pool:
            return list(pool.map(lambda party: party.work(work), parties))

    @property
    def sent(self) -> list[list[list[bytes]]]:
        """The messages of each exchange, by sender and receiver."""
        exchanges = len(self.kept) // len(self.places)
        return [[self.kept[number, place] for place in self.places] for number in range(exchanges)]


class _Party(Party):
    def __init__(self, room: Room, place: int) -> None:
        self.plan, self.place, self._room = room.plan, place, room
        self.site = room.plan.names[place]
        self._exchanges = itertools.count()

    def work(self, work: Callable[[Party], Any]) -> Any:
        try:
            return work(self)
        except SqlanonError as error:
            return error
        finally:
            self._put([None for _ in self._room.places])

    def _put(self, messages: Sequence[bytes | None]) -> None:
        for place, message in enumerate(messages):
            self._room.boxes[self.place, place].put(message)

    def _exchange(self, messages: list[bytes], most: int, doing: str) -> list[bytes]:  # noqa: ARG002 - see below
        """Exchange messages of any length: what a connection does not read is for the tests of connections."""
        number = next(self._exchanges)
        if self._room.tamper is not None:
            messages = self._room.tamper(self.place, number, messages)
        self._put(messages)
        received = [self._room.boxes[place, self.place].get(timeout=WAITING) for place in self._room.places]
        for message, name in zip(received, self.plan.names, strict=True):
            if message is None:
                raise AccessError(f"Site '{name}' left {doing}.")
        self._room.kept[number, self.place] = messages
        return [message for message in received if message is not None]


def record(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, into: list[tuple[str, Any]]) -> None:
    """Keep what a method returns, each time that it is called."""
    called: Callable[..., Any] = getattr(owner, name)

    def recording(*arguments: Any) -> Any:
        result = called(*arguments)
        into.append((name, result))
        return result

    monkeypatch.setattr(owner, name, recording)


def sites_of(directory: Path, seed: int, **more: Any) -> Sites:
    """Sites with databases of DuckDB, which threads can share with the test."""
    urls = {name: duckdb_url(directory / f"{name}.duckdb") for name in (*NAMES, "union")}
    return Sites(directory, urls, random_rows(seed, 240), **more)


def release(
    sites: Sites, room: Room | None = None, observers: Mapping[str, Observer | None] | None = None, **policies: Any
) -> dict[str, Any]:
    """Release together, each site in a thread; results, or errors."""

    def part(party: Party) -> Any:
        policy = build_policy(policies.get(party.site) or sites.policy(party.site))
        with open_session(policy, OPTIONS) as session:
            observer = (observers or {}).get(party.site)
            return release_together(session, policy, party, replace=True, observer=observer)

    return dict(zip(NAMES, (room or Room(NAMES, **sites.plan)).run(part), strict=True))
