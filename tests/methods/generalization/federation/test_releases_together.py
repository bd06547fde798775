"""Releases of several owners: what one database with all rows would release, in parts, or nothing at all."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sqlanon.errors import AccessError, PolicyError, VerificationError
from sqlanon.methods.generalization.federation.federation_plan import load_plan
from tests.methods.generalization.federation.sites import AGES, CANARY, CITIES, Sites, attributes, random_rows
from tests.methods.generalization.federation.support import (
    NAMES,
    Federation,
    RecordingProxy,
    SiteProcess,
    end_all,
    make_certificate,
    needs_federation,
    start_all,
)
from tests.patience import wait_until

pytestmark = [needs_federation, pytest.mark.slow]
CASES: list[dict[str, Any]] = [
    {"suppression": 0.1},
    {"suppression": 0.3, "privacy": [{"model": "k-anonymity", "k": 6}], "algorithm": {"name": "optimal"}},
    {"algorithm": {"name": "optimal", "limits": {"age": [1, 3]}, "quality": "discernibility"}, "suppression": 0.2},
    {"algorithm": {"name": "incognito", "limits": {"city": [1, 2], "age": [1, 2]}}, "suppression": 0.05},
    {"few": 2, "suppression": 0.1, "privacy": [{"model": "k-anonymity", "k": 6}]},  # fewer than k rows at a site
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_sites_release_what_one_database_would(number: int, tmp_path: Path, urls: dict[str, str]) -> None:
    """The levels, the rows and the verdict are the same; each site has those of its own rows."""
    sites = Sites(tmp_path, urls, random_rows(number, 240), **CASES[number])
    ended = end_all(start_all(sites.federation, sites.policies()))
    assert {name: code for name, (code, _) in ended.items()} == dict.fromkeys(NAMES, 0), ended
    whole = sites.release_union().as_json()
    released = {row[-1]: row for row in sites.released("union")}
    for name, (_, result) in ended.items():
        assert result["algorithm"]["levels"] == whole["algorithm"]["levels"]
        assert result["models"] == whole["models"]
        assert result["verified"]
        assert sites.released(name) == [released[row[-1]] for row in sites.rows[name] if row[-1] in released]
        for figure in ("classes", "min_class_size", "max_class_size"):
            assert result["release"][figure] == whole["release"][figure]
        assert result["metrics"]["discernibility"] == whole["metrics"]["discernibility"]


def test_no_release_where_one_database_would_have_none(tmp_path: Path, urls: dict[str, str]) -> None:
    """Everybody hears why, and the old releases stay."""
    sites = Sites(tmp_path, urls, random_rows(7, 40), privacy=[{"model": "k-anonymity", "k": 50}])
    sites.publish_old()
    ended = end_all(start_all(sites.federation, sites.policies()))
    with pytest.raises(PolicyError, match="k is 50, but the table holds 40 rows"):
        sites.release_union()
    assert {code for code, _ in ended.values()} == {PolicyError.exit_code}, ended
    sites.require_old()


@pytest.mark.parametrize("reveal", ["counts", "decision"])
@pytest.mark.parametrize("phase", ["plan", "encode", "search", "recode", "verify", "publish"])
def test_a_site_that_dies_leaves_every_old_release(
    phase: str, reveal: str, tmp_path: Path, urls: dict[str, str]
) -> None:
    """The others name it, and publish nothing; the next run does."""
    algorithm = {"name": "optimal", "quality": "precision"}
    sites = Sites(tmp_path, urls, random_rows(3, 120), plan={"reveal": reveal}, suppression=0.2, algorithm=algorithm)
    sites.publish_old()
    north, south, west = start_all(sites.federation, sites.policies(), south=phase)
    south.until(phase)
    south.kill()
    ended = end_all([north, west])
    assert {code for code, _ in ended.values()} == {AccessError.exit_code}, ended
    assert all("'south'" in str(error) for _, error in ended.values()), ended
    south.end()
    sites.require_old()
    ended = end_all(start_all(sites.federation, sites.policies()))
    assert {code for code, _ in ended.values()} == {0}, ended


def changed_hierarchy() -> dict[str, Any]:
    changed = attributes()
    changed["age"]["hierarchy"] = {"mapping": {**AGES, "20": ["25-29", "20s"]}}
    return {"attributes": changed}


CHANGES: dict[str, Any] = {
    "the hierarchy of column 'age'": changed_hierarchy(),
    "privacy": {"privacy": [{"model": "k-anonymity", "k": 2}]},
    "suppression": {"suppression": 0.5},
    "the role of column 'disease'": {"attributes": {**attributes(), "disease": {"role": "insensitive"}}},
}


@pytest.mark.parametrize("part", CHANGES)
def test_another_policy_is_refused_by_its_part(part: str, tmp_path: Path, urls: dict[str, str]) -> None:
    """Every site names what differs and where, and no values; nothing is counted or published."""
    sites = Sites(tmp_path, urls, random_rows(3, 60), suppression=0.2)
    sites.publish_old()
    policies = sites.policies() | {"west": sites.policy("west", **CHANGES[part])}
    ended = end_all(start_all(sites.federation, policies))
    assert {code for code, _ in ended.values()} == {PolicyError.exit_code}, ended
    expected = f"PolicyError: Site 'west' differs from site 'north' in {part}; make them the same."
    assert {error for _, error in ended.values()} == {expected}
    sites.require_old()


def test_strangers_are_refused(tmp_path: Path, urls: dict[str, str]) -> None:
    """Whoever has no certificate, or one that the plan does not name, or sends again what a site sent, stops nobody.

    The first site's bytes begin a session anew, of which the stranger has no keys: nothing of it is taken.
    """
    sites = Sites(tmp_path, urls, random_rows(5, 90), suppression=0.3)
    stranger = make_certificate(tmp_path, "stranger")
    port = sites.federation.ports["west"]
    with RecordingProxy(port).passing() as proxy:
        sites.federation.addresses["north", "west"] = proxy.port
        north = SiteProcess(sites.federation, "north", sites.policy("north"))
        west = SiteProcess(sites.federation, "west", sites.policy("west"))
        assert knock(port, None) == b""
        assert knock(port, stranger) == b""
        assert knock(port, None, plain=True) == b""
        wait_until(lambda: len(proxy.sent) > 600)  # more than the first message of the handshake
        assert not is_answered(port, bytes(proxy.sent))
        south = SiteProcess(sites.federation, "south", sites.policy("south"))
        assert {code for code, _ in end_all([north, south, west]).values()} == {0}


def is_answered(port: int, sent: bytes) -> bool:
    """Send recorded bytes to a site; whether it answers by more than its part of a handshake, and an alert."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, contextlib.suppress(OSError):
        connection.sendall(sent)
        received = bytearray()
        while data := connection.recv(65536):
            received += data
        return len(received) > 10_000
    return False


def knock(port: int, key: Path | None, plain: bool = False) -> bytes:
    """Connect to a site as its first site would; what it answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if key is not None:
        context.load_cert_chain(key.with_suffix(".crt"), key)
    for _ in range(600):
        with contextlib.suppress(ConnectionRefusedError):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as raw, contextlib.suppress(OSError):
                connection = raw if plain else context.wrap_socket(raw)
                connection.sendall(b"\x00\x00" + bytes(64))
                return connection.recv(100)
            return b""
        time.sleep(0.1)
    raise AssertionError("the site does not listen")


def test_a_site_with_another_certificate_is_named(tmp_path: Path, urls: dict[str, str]) -> None:
    """A key that does not belong to the plan's certificate is no key of the site."""
    sites = Sites(tmp_path, urls, random_rows(5, 60))
    sites.federation.keys["west"] = make_certificate(tmp_path, "other")
    code, error = SiteProcess(sites.federation, "west", sites.policy("west")).end()
    assert code == PolicyError.exit_code
    assert "--key" in str(error)
    assert "west.crt" in str(error)


def keep_small_classes(_directory: Path) -> None:
    """Suppress nothing, in a site's process."""
    from sqlanon.methods.generalization.federation.releasing import SharedSearch

    SharedSearch._failing = lambda *_: []  # type: ignore[method-assign]


def lose_large_classes(_directory: Path) -> None:
    """Suppress more than was decided on, in a site's process."""
    from sqlanon.methods.generalization.federation.releasing import SharedSearch

    SharedSearch._failing = lambda _, classes: list(classes)[:1]  # type: ignore[method-assign]


@pytest.mark.parametrize("tamper", [keep_small_classes, lose_large_classes])
def test_staged_releases_that_were_not_decided_on_are_not_published(
    tamper: Callable[[Path], None], tmp_path: Path, urls: dict[str, str]
) -> None:
    """One site recodes its rows in another way: no site publishes."""
    fixed = {"name": "optimal", "limits": {"age": [1, 1], "sex": [1, 1], "city": [0, 0]}}  # with small classes
    sites = Sites(tmp_path, urls, random_rows(3, 240), suppression=0.5, algorithm=fixed)
    sites.publish_old()
    others = [SiteProcess(sites.federation, name, sites.policy(name)) for name in ("north", "south")]
    west = SiteProcess(sites.federation, "west", sites.policy("west"), before=tamper)
    assert {code for code, _ in end_all([*others, west]).values()} == {VerificationError.exit_code}
    sites.require_old()


def die_before_the_vote(_directory: Path) -> None:
    """End the process, in which all is done but the commit."""
    from sqlanon.methods.generalization.federation.releasing import PublishTogether

    PublishTogether._vote = lambda _: os._exit(1)  # type: ignore[method-assign]


def test_no_site_commits_before_all_are_about_to(tmp_path: Path, urls: dict[str, str]) -> None:
    """A site that dies when its release could take its place leaves the old one with the others, too."""
    sites = Sites(tmp_path, urls, random_rows(4, 120), suppression=0.2)
    sites.publish_old()
    others = [SiteProcess(sites.federation, name, sites.policy(name)) for name in ("north", "south")]
    west = SiteProcess(sites.federation, "west", sites.policy("west"), before=die_before_the_vote)
    assert {name: code for name, (code, _) in end_all([*others, west]).items()} == {
        "north": AccessError.exit_code,
        "south": AccessError.exit_code,
        "west": 1,
    }
    sites.require_old()


def record_received(directory: Path) -> None:
    """Write down, in a site's process, all that it is sent, as it is after decryption."""
    from sqlanon.methods.generalization.federation.mpyc_runtime import Exchanger

    received = Exchanger.data_received

    def recording(self: Any, data: bytes) -> None:
        with (directory / "received.bin").open("ab") as file:
            file.write(data)
        received(self, data)

    Exchanger.data_received = recording  # type: ignore[method-assign]


@pytest.mark.parametrize("reveal", ["counts", "decision"])
def test_no_value_and_no_count_of_a_site_leaves_it(reveal: str, tmp_path: Path, urls: dict[str, str]) -> None:
    """Neither on the wire nor in what another site decrypts, writes down or prints."""
    rows = random_rows(5, 747)  # 373 at the northern site, a number that is nothing else
    algorithm = {"name": "optimal", "quality": "precision"}
    sites = Sites(tmp_path, urls, rows, plan={"reveal": reveal}, suppression=0.1, algorithm=algorithm)
    counts = local_counts(sites)
    with RecordingProxy(sites.federation.ports["west"]).passing() as proxy:
        sites.federation.addresses["north", "west"] = proxy.port
        north = SiteProcess(sites.federation, "north", sites.policy("north"))
        south = SiteProcess(sites.federation, "south", sites.policy("south"))
        west = SiteProcess(sites.federation, "west", sites.policy("west"), before=record_received)
        assert {code for code, _ in end_all([north, south, west]).values()} == {0}
        seen = bytes(proxy.seen)
    received = (tmp_path / "received.bin").read_bytes()
    assert len(seen) > 10_000
    assert len(received) > 10_000
    for data in (seen, received):
        assert CANARY.encode() not in data
        assert b"Ulm" not in data
        for width in (4, 8):
            assert b"".join(count.to_bytes(width, "little") for count in counts) not in data
    assert str(len(sites.rows["north"])) not in west.said.read_text()


def local_counts(sites: Sites) -> list[int]:
    """The rows of the northern site in some adjoining cells, which would be sent openly as whole numbers."""
    cells: dict[tuple[Any, ...], int] = {}
    for row in sites.rows["north"]:
        cells[row[:3]] = cells.get(row[:3], 0) + 1
    ages, sexes, cities = list(AGES), ["F", "M", None], [*CITIES, None]
    vector = [cells.get((int(age), sex, city), 0) for age in ages for sex in sexes for city in cities]
    start = next(n for n in range(len(vector)) if sum(map(bool, vector[n : n + 8])) >= 4)
    return vector[start : start + 8]


def test_sites_are_commands(tmp_path: Path, urls: dict[str, str]) -> None:
    """Each site is one command with a plan, a policy and a key; decisions alone are opened, too."""
    algorithm = {"name": "optimal", "quality": "height"}
    sites = Sites(
        tmp_path, urls, random_rows(2, 120), plan={"reveal": "decision"}, suppression=0.2, algorithm=algorithm
    )
    started = []
    for name in NAMES:
        file = tmp_path / f"{name}.yml"
        with file.open("w") as written:
            YAML().dump(sites.policy(name), written)
        place = [str(sites.federation.plan(name)), str(file), "--site", name, "--key", str(sites.federation.keys[name])]
        command = [sys.executable, "-m", "sqlanon", "federate", "serve", *place, "--json"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    ended = [one.communicate(timeout=120) for one in started]
    assert [one.returncode for one in started] == [0, 0, 0], ended
    levels = [json.loads(output)["algorithm"]["levels"] for output, _ in ended]
    assert levels[0] == levels[1] == levels[2] == sites.release_union().as_json()["algorithm"]["levels"]


def test_fewer_than_three_sites_are_refused(tmp_path: Path) -> None:
    federation = Federation(tmp_path, names=("north", "south"))
    with pytest.raises(PolicyError, match="must name 3 to 32 sites"):
        load_plan(federation.plan("north"))
