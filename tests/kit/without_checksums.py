"""Records that were edited by somebody who takes their checksums off, as a stranger may."""

from __future__ import annotations

import json
from pathlib import Path

from bench.records.cell_folder import FILES
from bench.records.checksums import CHECKSUM


def without_checksums(folder: Path) -> None:
    """Take the checksums off all records below a folder."""
    for name in ("plan.json", "result.json"):
        for file in folder.rglob(name):
            content = json.loads(file.read_text())
            file.write_text(
                json.dumps({key: content[key] for key in content if key not in (CHECKSUM, FILES)})
            )
