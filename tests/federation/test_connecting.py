"""Sites that do not come, do not answer, or find their address taken: others name them, and nobody waits for ever."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqlanon.errors import AccessError
from sqlanon.federation.federation_plan import load_plan
from sqlanon.federation.party import Party
from tests.federation.support import NAMES, WAITING, Federation, needs_federation

pytestmark = needs_federation


def connect(federation: Federation, name: str) -> Party:
    return Party(load_plan(federation.plan(name)), name, federation.keys[name])


def test_sites_that_do_not_come_are_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"No answer came from 'south', 'west' within 0\.2 seconds") as caught:
        connect(Federation(tmp_path, more={"patience": 0.2}), "north")
    assert "Is the command running there" in str(caught.value)


def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    federation = Federation(tmp_path)
    with (
        socket.create_server(("127.0.0.1", federation.ports["west"])),
        pytest.raises(AccessError, match="the address of this site in the plan: Address already in use"),
    ):
        connect(federation, "west")


def test_a_site_that_does_not_answer_is_named_by_all_others(tmp_path: Path) -> None:
    """It stays connected, and says nothing; one of the others gives up first, and the last names the silent one too."""
    federation, are_done = Federation(tmp_path), threading.Event()
    connected = threading.Barrier(len(NAMES), timeout=WAITING)

    def part(name: str) -> str:
        with connect(federation, name) as party:
            party.plan = party._runtime.plan = party.plan.model_copy(update={"patience": 0.5})
            connected.wait()
            if name == "south":
                are_done.wait(WAITING)
                return "silent"
            try:
                party.tell(name, "while they talked")
            except AccessError as error:
                return str(error)
            return "answered"

    with ThreadPoolExecutor(len(NAMES)) as pool:
        parts = {name: pool.submit(part, name) for name in NAMES}
        heard = [parts[name].result() for name in ("north", "west")]
        are_done.set()
    assert all("'south'" in one and "while they talked" in one for one in heard), heard
