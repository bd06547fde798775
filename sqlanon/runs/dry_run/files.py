"""Files that a dry run does not write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sqlanon.engines.written_files import WrittenFiles
from sqlanon.runs.dry_run.script import Script


class RecordingFiles(WrittenFiles):
    """Files whose making is written down."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @contextlib.contextmanager
    def private_directory(self, parent: str | Path | None) -> Iterator[Path]:  # noqa: ARG002 - nothing is made
        yield Path("PRIVATE_DIRECTORY")

    def create(self, path: Path) -> None:
        self._script.remark("files/create", f"Create the file {path}, which only this user can read.")

    def move(self, path: Path, place: Path) -> None:
        """Both stand for a private directory."""

    def publish(self, part: Path, target: Path) -> None:
        self._script.remark("files/publish", f"Let the file {part} take the name {target}, in one step.")

    def publish_directory(self, part: Path, target: Path) -> None:
        self._script.remark("files/publish", f"Let the directory {part} take the name {target}, by two renames.")

    def remove(self, path: Path) -> None:
        """There is none."""

    def digest(self, path: Path) -> str:
        self._script.remark("files/digest", f"Digest the file {path}.")
        return "0" * 64
