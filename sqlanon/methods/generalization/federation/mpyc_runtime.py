"""MPyC's runtime with connections of ours: mutual TLS by pinned certificates, no pickles, and an end when a site dies.

MPyC reads the arguments of the process when it is loaded, takes its certificates from a fixed directory, waits for a
lost site for ever, and sends arrays as pickles, which could make a receiver run code; none of that happens here.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import ssl
import struct
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from sqlanon.errors import AccessError, PolicyError
from sqlanon.methods.generalization.federation.certificates import Credentials
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan

_PARTS = ("sectypes", "asyncoro", "mpctools", "seclists", "secpols", "secgroups", "random", "statistics")
_GRACE = 5.0  # seconds for messages of the others, where a site has left after it had sent its own
_NAME = 2  # bytes by which a site that connects names itself
_HEAD = struct.Struct("<qI")  # the number of a message and its length
_RETRY = 0.1  # seconds between attempts to reach a site that does not listen yet


def _load() -> ModuleType:
    """Load MPyC's runtime without the arguments of this process."""
    given, sys.argv = sys.argv, [sys.argv[0], "--no-log", "--mix32-64bit"]
    try:
        return importlib.import_module("mpyc.runtime")
    except ImportError:
        raise PolicyError(
            "A federation computes with the package MPyC, which is not installed: pip install 'sqlanon[federation]'"
        ) from None
    finally:
        sys.argv = given


mpyc = _load()
asyncoro = importlib.import_module("mpyc.asyncoro")


@dataclass(frozen=True)
class _Expected:
    """A message that is waited for: its number, the most bytes that it may have, and where it goes."""

    number: int
    most: int
    message: asyncio.Future[bytes]


class Exchanger(asyncoro.MessageExchanger):  # type: ignore[misc, name-defined]
    """A connection with one other site, whose certificate says which one it is.

    Sites are in step: what a site sends before it is waited for stays with the network, and of a message that is longer
    than may be nothing but the head is read.
    """

    def __init__(self, runtime: SiteRuntime, peer: int | None = None) -> None:
        """peer: the site that this one connects to; None of a connection that another site makes."""
        super().__init__(runtime, peer)
        self.site: int | None = None
        self._held = bytearray()
        self._expected: _Expected | None = None

    def connection_made(self, transport: Any) -> None:
        """Refuse whoever shows no site's certificate, or is connected already."""
        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        site = self.runtime.credentials.site_of(shown)
        is_listening = self.peer_pid is None
        known = site is not None and (is_listening or site == self.peer_pid)
        if not known or (is_listening and site in self.runtime.arrived):
            self.site = None
            transport.abort()
            return
        self.site = site
        self.runtime.arrived.add(site)
        super().connection_made(transport)
        self._take()

    def data_received(self, data: bytes) -> None:
        """Take what belongs to the message that is waited for; nothing is read until one is."""
        if self.site is None:
            return
        self._held.extend(data)
        if self.peer_pid is None:
            self._greet()
        self._take()

    def expect(self, number: int, most: int) -> asyncio.Future[bytes]:
        """Let the message of a number come, of so many bytes at most."""
        self._expected = _Expected(number, most, self.runtime._loop.create_future())
        message = self._expected.message
        self._take()
        return message

    def _greet(self) -> None:
        """Take the first message of a site that has connected, which names it, and must name the right one."""
        if len(self._held) < _NAME:
            return
        if int.from_bytes(self._held[:_NAME], "little") != self.site:
            self.transport.abort()
            return
        length = _NAME + (0 if self.runtime.options.no_prss else self.runtime._prss_keys_from_peer(self.site))
        if len(self._held) >= length:
            greeting = bytes(self._held[:length])
            del self._held[:length]
            super().data_received(greeting)

    def _take(self) -> None:
        """Hand over the message that is waited for, if it is here, and read on as long as it is not."""
        expected = self._expected
        if expected is not None and len(self._held) >= _HEAD.size:
            number, length = _HEAD.unpack_from(self._held)
            if number != expected.number or length > expected.most:
                self.runtime.refuse(self.site, length, expected.most)
                self.transport.abort()
                return
            if len(self._held) >= _HEAD.size + length:
                message = bytes(self._held[_HEAD.size : _HEAD.size + length])
                del self._held[: _HEAD.size + length]
                self._expected = None
                if not expected.message.done():
                    expected.message.set_result(message)
        if self.peer_pid is None or self._expected is not None:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        """Tell the runtime, so that nobody waits for the site."""
        if self.site is not None:
            self.runtime.lose(self.site)


class SiteRuntime(mpyc.Runtime):  # type: ignore[misc, name-defined]
    """The runtime of one site.

    arrived: the sites that are connected. left: is done when a site is lost.
    """

    def __init__(self, plan: FederationPlan, place: int, credentials: Credentials) -> None:
        own = {"threshold": (len(plan.sites) - 1) // 2, "no_async": False}
        options = argparse.Namespace(**{**vars(mpyc.mpc.options), **own})
        parties = [mpyc.Party(n, site.host, site.port) for n, site in enumerate(plan.sites.values())]
        super().__init__(place, parties, options)
        self.plan, self.credentials = plan, credentials
        self.arrived: set[int] = set()
        self.is_ending = False
        self.awaited: int | None = None  # the site whose message is waited for; another may have left after its own
        self._exchanges = 0  # messages of the same number belong together; those of MPyC itself have hashes
        self.refusal: str | None = None  # why a site's message was not read
        self.left: asyncio.Future[int] = self._loop.create_future()
        self._loop.set_exception_handler(_say_nothing)
        for part in _PARTS:
            importlib.import_module(f"mpyc.{part}").runtime = self  # type: ignore[attr-defined]

    def lose(self, site: int) -> None:
        """Note that a site has gone."""
        if not self.is_ending and not self.left.done():
            self.left.set_result(site)

    def refuse(self, site: int, length: int, most: int) -> None:
        """Note that a site sent a message that was not waited for, or a longer one, which ends the work of all."""
        self.refusal = (
            f"Site '{self.plan.names[site]}' sent a message of {length:,} bytes that was not waited for, where one has"
            f" {most:,} at most; it was not read, and nothing was published. Do all run the same version of sqlanon?"
        )
        self.lose(site)

    async def start(self) -> None:
        """Connect with every site; those before this one in the plan connect to it."""
        for party in self.parties:
            party.protocol = self._loop.create_future() if party.pid == self.pid else None
        own = self.parties[self.pid]
        server = None
        if self.pid:
            try:
                server = await self._loop.create_server(
                    lambda: Exchanger(self), own.host, own.port, ssl=self.credentials.listening()
                )
            except OSError as error:
                raise AccessError(
                    f"Nobody can listen at {own.host}:{own.port}, the address of this site in the plan:"
                    f" {os.strerror(error.errno or 0)}. Does an earlier command of this site still run?"
                ) from None
        try:
            await asyncio.gather(*(self._reach(party) for party in self.parties[self.pid + 1 :]))
            await own.protocol
        finally:
            if server is not None:
                server.close()

    async def _reach(self, party: Any) -> None:
        """Connect to a site as soon as it listens."""
        name = self.plan.names[party.pid]
        while True:
            try:
                await self._loop.create_connection(
                    lambda: Exchanger(self, party.pid),
                    party.host,
                    party.port,
                    ssl=self.credentials.connecting(party.pid),
                    server_hostname="",
                )
            except ssl.SSLCertVerificationError:
                raise AccessError(
                    f"What listens at the address of site '{name}' shows another certificate than the plan's;"
                    " nothing was sent to it."
                ) from None
            except OSError:
                await asyncio.sleep(_RETRY)
            else:
                return

    async def exchange(self, messages: Sequence[bytes], most: int) -> list[bytes]:
        """Send each site its message; returns the messages of all, the own one in its place.

        most: bytes that a message may have.
        """
        self._exchanges += 1
        others = [party for party in self.parties if party.pid != self.pid]
        for party in others:
            party.protocol.send(self._exchanges, messages[party.pid])
        received = {party.pid: party.protocol.expect(self._exchanges, most) for party in others}
        read: list[bytes] = []
        for site, one in received.items():
            self.awaited = site
            read.append(await one)
        self.awaited = None
        return [*read[: self.pid], messages[self.pid], *read[self.pid :]]

    def carry_out(self, work: Coroutine[Any, Any, Any], doing: str) -> Any:
        """Carry out a part of the protocol; raises AccessError where a site is lost, or does not answer in time."""
        return self._loop.run_until_complete(self._until_left(work, doing))

    async def _until_left(self, work: Coroutine[Any, Any, Any], doing: str) -> Any:
        task = asyncio.ensure_future(work, loop=self._loop)
        waiting: set[asyncio.Future[Any]] = {task, self.left}
        await asyncio.wait(waiting, timeout=self.plan.patience, return_when=asyncio.FIRST_COMPLETED)
        if self.refusal is not None:
            task.cancel()
            raise AccessError(self.refusal)
        if not task.done() and self.left.done():  # what it sent before may be on its way, and others' too
            is_needed = self.awaited in (None, self.left.result())
            await asyncio.wait({task}, timeout=_RETRY if is_needed else _GRACE)
        if task.done():
            return task.result()
        task.cancel()
        raise AccessError(self._absent(doing))

    def _absent(self, doing: str) -> str:
        """Name the site that left, and those that are not connected, or whose message is waited for."""
        left = self.left.result() if self.left.done() else None
        missing = [party.pid for party in self.parties if party.pid not in {self.pid, *self.arrived}]
        silent = missing or [site for site in (self.awaited,) if site not in (None, left)]
        who = ", ".join(f"'{name}'" for site, name in enumerate(self.plan.names) if site in silent) or "some site"
        parts = [f"No answer came from {who} within {self.plan.patience:g} seconds (patience), {doing}."]
        if left is not None:
            parts = [f"Site '{self.plan.names[left]}' left, or refused this site's certificate, {doing}."]
            parts += [f"No answer had come from {who}."] if silent else []
        parts += ["Is the command running there, and can the address in the plan be reached?"] if missing else []
        return " ".join(parts)

    def end(self) -> None:
        """Close all connections, once what was sent is on its way."""
        self.is_ending = True
        for party in self.parties:
            if party.pid != self.pid and party.protocol is not None:
                party.protocol.close_connection()
        self._loop.run_until_complete(asyncio.sleep(_RETRY))


def _say_nothing(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Pass over a stranger's handshake, and a task that was given up: what matters is raised where it is waited for."""
