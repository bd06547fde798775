"""Sites that do not come, do not answer, or find their address taken: others name them, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sqlanon.errors import AccessError
from sqlanon.methods.generalization.federation.federation_plan import load_plan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.serving import serve
from sqlanon.policy.loading import build_policy
from tests.methods.generalization.federation.support import (
    NAMES,
    WAITING,
    Federation,
    make_certificate,
    needs_federation,
)
from tests.methods.generalization.federation.threads import sites_of
from tests.patience import PATIENCE
from tests.run_support import anonymize

pytestmark = needs_federation

FLOOD = 2**27  # bytes: far more than the buffers of a connection on this machine


def connect(federation: Federation, name: str) -> Party:
    return Party(load_plan(federation.plan(name)), name, federation.keys[name])


def test_sites_that_do_not_come_are_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"No answer came from 'south', 'west' within 0\.2 seconds") as caught:
        connect(Federation(tmp_path, more={"patience": 0.2}), "north")
    assert "Is the command running there" in str(caught.value)


def test_a_site_uses_no_catalog_but_the_one_that_its_policy_names(tmp_path: Path) -> None:
    """A site whose catalog may be mistyped waits for nobody."""
    sites = sites_of(tmp_path, 1)
    policy = sites.policy("north")
    anonymize(build_policy(policy))
    mistyped = build_policy(policy | {"catalog": {"schema": "mistyped"}})
    with pytest.raises(AccessError, match="There is no catalog in schema"):
        serve(load_plan(sites.federation.plan("north")), mistyped, "north", sites.federation.keys["north"])


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


@pytest.mark.parametrize("kind", ["words", "counts", "early", "another number"])
def test_a_message_that_is_too_long_is_not_received(kind: str, tmp_path: Path) -> None:
    """A member says that gigabytes follow, and sends as much as is taken: buffers are filled, and that is all."""
    federation, ended = Federation(tmp_path), threading.Event()
    connected = threading.Barrier(len(NAMES), timeout=WAITING)

    def hostile(party: Party) -> int:
        """Send until nobody reads any more; how many bytes were taken at the least."""
        runtime = party._runtime
        victim = runtime.parties[0].protocol.transport
        number = 7 if kind == "another number" else 2 if kind == "early" else 1
        length = 5 if kind == "another number" else 2**32 - 1
        victim.write(struct.pack("<qI", number, length))

        async def flood() -> int:
            sent = 0
            while sent < FLOOD and not ended.is_set() and not victim.is_closing():
                if victim.get_write_buffer_size() < 2**20:
                    victim.write(bytes(2**16))
                    sent += 2**16
                await asyncio.sleep(0)
            return sent

        return int(party._loop.run_until_complete(flood()))

    def part(name: str) -> Any:
        with connect(federation, name) as party:
            connected.wait()
            if name == "south":
                return hostile(party)
            try:
                if kind == "early":
                    ended.wait(2)  # it is busy, and waits for no message
                if kind == "counts":
                    return party.add(np.zeros(1_000, np.uint64), "while they counted")
                return party.tell(name, "while they talked")
            except AccessError as error:
                return str(error)
            finally:
                if name == "north":
                    ended.set()

    with ThreadPoolExecutor(len(NAMES)) as pool:
        parts = {name: pool.submit(part, name) for name in NAMES}
        heard, sent = parts["north"].result(), parts["south"].result()
    assert "Site 'south' sent a message of" in heard
    assert "it was not read" in heard
    assert sent < FLOOD


@pytest.mark.parametrize("kind", ["plain", "without a certificate", "with another certificate"])
def test_what_a_stranger_sends_is_not_received(kind: str, tmp_path: Path) -> None:
    federation = Federation(tmp_path, more={"patience": 3})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(connect, federation, "west")
        assert flood(federation.ports["west"], kind, tmp_path) < FLOOD
        with pytest.raises(AccessError, match="No answer came from 'north', 'south'"):
            waiting.result()


def flood(port: int, kind: str, directory: Path) -> int:
    """Send to a port until nobody takes any more; how many bytes were taken."""
    sent = 0
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(listened_to(port))
        plain.settimeout(2)
        with contextlib.suppress(OSError):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if kind == "with another certificate":
                key = make_certificate(directory, "other")
                context.load_cert_chain(directory / "other.crt", key)
            channel = plain if kind == "plain" else stack.enter_context(context.wrap_socket(plain))
            while sent < FLOOD:
                sent += channel.send(bytes(2**16))
    return sent


def listened_to(port: int) -> socket.socket:
    """Connect to a port at which somebody is about to listen."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)
