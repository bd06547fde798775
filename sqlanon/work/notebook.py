"""The progress of a run in a notebook: one line below the cell, which changes."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from sqlanon.work.journal import Observer, Progress, Silent
from sqlanon.work.phases import phase_words

_SHELL = "ZMQInteractiveShell"  # of IPython in a notebook, where a cell's output can change


def follower(observer: Observer | None) -> Observer:
    """Return the observer of a run: the given one; else the line of a notebook, and elsewhere one that does nothing."""
    if observer is not None:
        return observer
    return NotebookProgress() if _is_notebook() else Silent()


def _is_notebook() -> bool:
    """Tell whether a cell of a notebook runs; nothing is imported for that."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == _SHELL


class NotebookProgress:
    """One line that says the phase of a run, and how far its search is; without seconds, so that private runs have it.

    Rich renders the line, and IPython shows it in place of the one before, so that no widgets are needed.
    """

    def __init__(self) -> None:
        self._handle: Any = None

    def started(self, run: str) -> None:
        """Show nothing yet: a phase is shown already."""

    def phase(self, name: str) -> None:
        """Show the phase that begins."""
        self._show(f"{phase_words(name)} …")

    def progress(self, progress: Progress) -> None:
        """Show how far the search is."""
        self._show(f"searching, {progress.text} …")

    def _show(self, line: str) -> None:
        from rich.text import Text  # here, as rich is for people who watch

        display = importlib.import_module("IPython.display").display
        if self._handle is None:
            self._handle = display(Text(line), display_id=True)
        else:
            self._handle.update(Text(line))
