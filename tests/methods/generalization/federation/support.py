"""Sites of a federation as processes of this machine, each with a database, a policy and a key of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import SqlanonError
from sqlanon.policy.loading import build_policy
from tests import child_run
from tests.child_run import FORKED, PhaseSender
from tests.patience import PATIENCE
from tests.run_support import Row

WAITING = 4 * PATIENCE  # for a site that waits for others, which may only be starting
needs_federation = pytest.mark.skipif(
    (shutil.which("openssl") is None or find_spec("mpyc") is None)
    and os.environ.get("SQLANON_REQUIRE_FEDERATION") != "1",
    reason="no openssl to make certificates with, or no mpyc: pip install 'sqlanon[federation]'",
)
NAMES = ("north", "south", "west")
if find_spec("mpyc") is not None:
    engines = ("sqlanon.engines.duckdb.engine", "sqlanon.engines.postgres.engine")
    parts = (
        "sqlanon.methods.generalization.federation.serving",
        "sqlanon.methods.generalization.federation.mpyc_runtime",
    )
    FORKED.set_forkserver_preload([child_run.__name__, "pytest", *engines, *parts])  # MPyC takes seconds to load


def make_certificate(directory: Path, name: str) -> Path:
    """Make a private key and a certificate that it signs itself; the key's file."""
    key = directory / f"{name}.key"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    place = ["-keyout", str(key), "-out", str(directory / f"{name}.crt")]
    subprocess.run(["openssl", "req", "-x509", *kind, *place], check=True, capture_output=True)
    key.chmod(0o600)
    return key


def free_ports(number: int) -> list[int]:
    """Find ports of this machine at which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


@dataclass
class Federation:
    """A federation in a directory: its certificates, and the addresses of its sites.

    addresses: by whom a site is reached (the site that reads the plan, the site that it reaches), where it is not by
        its own port.
    """

    directory: Path
    names: tuple[str, ...] = NAMES
    more: Mapping[str, Any] = field(default_factory=dict)
    addresses: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ports = dict(zip(self.names, free_ports(len(self.names)), strict=True))
        self.keys = {name: make_certificate(self.directory, name) for name in self.names}

    def plan(self, reader: str) -> Path:
        """Write the plan as a site reads it."""
        sites = "\n".join(
            f"  {name}: {{address: '127.0.0.1:{self.addresses.get((reader, name), self.ports[name])}',"
            f" certificate: {name}.crt}}"
            for name in self.names
        )
        options = {"patience": WAITING, **self.more}
        file = self.directory / f"plan-{reader}.yml"
        file.write_text(f"sites:\n{sites}\n" + "".join(f"{key}: {value}\n" for key, value in options.items()))
        return file


class SiteProcess:
    """A site's process, seen from the test."""

    def __init__(
        self,
        federation: Federation,
        name: str,
        policy: Mapping[str, Any],
        pause: str = "",
        before: Callable[[Path], None] | None = None,
    ) -> None:
        """pause: the phase to stop at, if any; before: is called in the process before it begins."""
        self.name = name
        self.said = federation.directory / f"{name}.err"
        self._told, telling = FORKED.Pipe(duplex=False)
        place = (federation.plan(name), name, federation.keys[name])
        arguments = (place, dict(policy), pause, before, telling, self.said, dict(os.environ))
        self._process = FORKED.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        telling.close()

    def until(self, phase: str) -> None:
        """Wait until the site comes to a phase."""
        while (told := self._next()) != phase:
            assert told, f"{self.name} ended before {phase}: {self.said.read_text()}"

    def kill(self) -> None:
        """End the process as a loss of power would."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)

    def end(self) -> tuple[int | None, Any]:
        """Wait for the end: the exit code, and the error or the result as the process told it."""
        last: Any = None
        while told := self._next():
            last = told
        self._process.join(WAITING)
        return self._process.exitcode, last

    def _next(self) -> Any:
        assert self._told.poll(WAITING), f"{self.name} says nothing: {self.said.read_text()}"
        with contextlib.suppress(EOFError):
            return self._told.recv()
        return ""


def _serve(
    place: tuple[Path, str, Path],
    policy: Mapping[str, Any],
    pause: str,
    before: Callable[[Path], None] | None,
    told: Connection,
    errors: Path,
    environment: Mapping[str, str],
) -> None:
    """Serve in the child: stderr goes to a file; phases, and the result or the error, to the pipe."""
    from sqlanon.methods.generalization.federation.federation_plan import load_plan
    from sqlanon.methods.generalization.federation.serving import serve

    os.environ.update(environment)
    tempfile.tempdir = None  # as the server of forks knows it, which may be that of an earlier test
    with errors.open("w") as file:
        os.dup2(file.fileno(), 2)
    plan, name, key = place
    if before is not None:
        before(errors.parent)
    try:
        result = serve(
            load_plan(plan),
            build_policy(policy),
            name,
            key,
            replace=True,
            options=EngineOptions(threads=1),
            observer=PhaseSender(told, pause),
        )
    except SqlanonError as error:
        told.send("\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]))
        sys.exit(error.exit_code)
    told.send(result.as_json())


def start_all(federation: Federation, policies: Mapping[str, Mapping[str, Any]], **pauses: str) -> list[SiteProcess]:
    """Start every site; `pauses` are the phases at which sites stop."""
    return [SiteProcess(federation, name, policies[name], pauses.get(name, "")) for name in federation.names]


def end_all(sites: Sequence[SiteProcess]) -> dict[str, tuple[int | None, Any]]:
    """Wait for the end of the sites."""
    return {site.name: site.end() for site in sites}


def rows_of_sites(rows: Sequence[Row], names: Sequence[str] = NAMES) -> dict[str, list[Row]]:
    """Deal rows out to sites, unevenly: the first has half of them."""
    dealt: dict[str, list[Row]] = {name: [] for name in names}
    for number, row in enumerate(rows):
        place = 0 if number % 2 else 1 + (number // 2) % (len(names) - 1)
        dealt[names[place]].append(row)
    return dealt


class RecordingProxy:
    """Passes bytes between a site that connects and one that listens, and keeps them: all, and those it sent."""

    def __init__(self, to: int) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._to = to
        self.seen, self.sent = bytearray(), bytearray()

    @contextlib.contextmanager
    def passing(self) -> Iterator[RecordingProxy]:
        """Inside, connections are passed on."""
        threading.Thread(target=self._accept, daemon=True).start()
        try:
            yield self
        finally:
            self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    near.close()  # the site does not listen yet
                    continue
                for one, other in ((near, far), (far, near)):
                    kept = self.sent if one is near else bytearray()
                    threading.Thread(target=self._pass, args=(one, other, kept), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, kept: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self.seen += data
                kept += data
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_WR)
