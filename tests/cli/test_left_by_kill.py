"""A run that spills and is killed (kill -9): whatever it left is private, and gone after `gc`."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.cli.support import call_main, execute, spawn

pytestmark = pytest.mark.slow

ROWS = 150_000
POLICY = """\
source:  {source}
release: {release}
attributes:
  age:    {{role: quasi-identifier}}
  zip:    {{role: quasi-identifier}}
  person: {{role: sensitive}}
privacy:
  - {{model: k-anonymity, k: 5}}
"""
PLANTED = b"PLANTED"
PEOPLE = f"""SELECT i % 90 AS age, hash(i) % 99999 AS zip, 'PLANTED' || lpad(i::VARCHAR, 9, '0') AS person
FROM range({ROWS}) AS t(i)"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which everything that a run makes is found, though the umask is open."""
    for name in ("in", "out", "tmp", "state"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture(autouse=True)
def _open_mask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def csv_policy(place: Path) -> Path:
    source = place / "in" / "people.csv"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({PEOPLE}) TO '{source}'")
    return write(place, f'{{file: "{source}"}}', f'{{file: "{place}/out/released.parquet"}}')


def duckdb_policy(place: Path) -> Path:
    file = place / "in" / "people.duckdb"
    execute(f"duckdb:///{file}", f"CREATE TABLE people AS {PEOPLE}")
    return write(place, f'{{url: "duckdb:///{file}", table: people}}', "{table: released}")


def write(place: Path, source: str, release: str) -> Path:
    policy = place / "policy.yml"
    policy.write_text(POLICY.format(source=source, release=release))
    return policy


def made(place: Path, before: set[Path]) -> list[Path]:
    """The files and directories that were not there before."""
    return sorted(path for path in place.rglob("*") if path not in before)


def is_private(path: Path, place: Path) -> bool:
    """Tell whether others can't read a path, by its own mode or by that of a directory above it."""
    chain = [path, *(above for above in path.parents if place in above.parents)]
    return any(not stat.S_IMODE(one.stat().st_mode) & 0o077 for one in chain)


@pytest.mark.parametrize("make", [csv_policy, duckdb_policy])
def test_a_killed_run_leaves_nothing_that_others_can_read(
    place: Path, capsys: pytest.CaptureFixture[str], make: object
) -> None:
    assert callable(make)
    policy = make(place)
    before = set(place.rglob("*"))
    limits = ("--memory-limit", "20MB", "--threads", "1", "-q")
    with spawn("run", policy, *limits) as child:
        spilled = wait_for_spill(place, child.poll)
        child.kill()
        child.wait()
    left = made(place, before)
    assert spilled.exists()
    assert all(is_private(path, place) for path in left), [path for path in left if not is_private(path, place)]
    code, out, _ = call_main(capsys, "gc", "--policy", policy)
    assert (code, f"removed directory {spilled}" in out) == (0, True)
    assert not spilled.exists()
    source = {path for path in before if path.is_file()}
    holding = [path for path in made(place, source) if path.is_file() and PLANTED in path.read_bytes()]
    assert [path for path in holding if path.suffix != ".wal"] == []
    leave_few_rows(place)
    assert call_main(capsys, "run", policy, "-q")[0] == 0
    assert {stat.S_IMODE(path.stat().st_mode) for path in (place / "out").iterdir()} <= {0o600}


def leave_few_rows(place: Path) -> None:
    """Cut the source down: another run need not take long."""
    file = place / "in" / "people.csv"
    if file.exists():
        file.write_text("\n".join(file.read_text().splitlines()[:31]))
    else:
        execute(f"duckdb:///{file.with_suffix('.duckdb')}", "DELETE FROM people WHERE age >= 3 OR zip >= 1000")


def wait_for_spill(place: Path, ended: object) -> Path:
    """The directory to which a run has spilled."""
    assert callable(ended)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for file in place.rglob("sqlanon-spill-*/duckdb_temp*"):
            return file.parent
        assert ended() is None, "the run ended without having spilled"
        time.sleep(0.005)
    raise AssertionError("nothing was spilled")


def test_all_that_commands_write_is_their_users_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "in" / "few.csv"
    file.write_text("age,zip,person\n" + "".join(f"{n % 3},1,{n % 2}\n" for n in range(30)))
    policy = write(place, f'{{file: "{file}"}}', f'{{file: "{place}/in/r.csv"}}')
    before = set(place.rglob("*"))
    assert call_main(capsys, "run", policy, "-q")[0] == 0
    runs = ("--policy", policy)
    run = call_main(capsys, "runs", *runs)[1].splitlines()[-1].split()[0]
    out = place / "out"
    assert call_main(capsys, "report", run, "-o", out / "report.html", *runs)[0] == 0
    assert call_main(capsys, "record", run, "-o", out / "record.json", *runs)[0] == 0
    assert call_main(capsys, "init", file, "-o", out / "draft.yml")[0] == 0
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in made(place, before)}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}, modes
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}, modes
    assert {"report.html", "record.json", "draft.yml", "r.csv"} <= {path.name for path in modes}
    (out / "record.json").chmod(0o640)
    assert call_main(capsys, "record", run, "-o", out / "record.json", *runs)[0] == 0
    assert stat.S_IMODE((out / "record.json").stat().st_mode) == 0o640
    assert os.umask(0o000) == 0  # given back
