"""The Python API in a real notebook, whose kernel has no ipywidgets."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
POLICY = """{"attributes": {"age": {"role": "quasi-identifier"}, "ward": {"role": "sensitive"}},
            "privacy": [{"model": "k-anonymity", "k": 5}]}"""
CELLS = [
    "import pandas, sqlanon\nframe = pandas.DataFrame({'age': range(100), 'ward': ['a', 'b'] * 50})",
    f"policy = {POLICY}",
    "release = sqlanon.anonymize(frame, policy)",
    "release",
    "quiet = sqlanon.anonymize(frame, policy, observer=sqlanon.Silent())",
    "with sqlanon.anonymize(frame, policy) as other:\n    print(other.df().equals(release.df()))",
]


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    """The outputs of each cell of a notebook that was carried out from its top to its end."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    path = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=path).execute()
    return [cell.outputs for cell in notebook.cells]


def test_the_kernel_has_no_widgets() -> None:
    assert importlib.util.find_spec("ipywidgets") is None, "these tests would not see what its absence does"


def test_a_frame_is_anonymized_and_shown(outputs: list[list[Any]]) -> None:
    (shown,) = outputs[3]
    assert "Verified: k-anonymity (k 5)." in shown.data["text/html"]
    assert [one.text for one in outputs[5] if one.output_type == "stream"] == ["True\n"]


def test_progress_is_one_line_that_changes_and_can_be_silenced(outputs: list[list[Any]]) -> None:
    (line,) = outputs[2]
    assert line.data["text/plain"] == "publishing …\n"
    assert outputs[4] == []
