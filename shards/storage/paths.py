"""The files of one replica, below the data directory."""

from pathlib import Path

from corvo.model.errors import Corrupt
from corvo.runtime.process import sync_directory


class Paths:
    def __init__(self, folder: Path, shard: int) -> None:
        self._folder = folder
        name = f"{shard:02d}"
        self.database = folder / name
        self.made = folder.parent / f"shard-{name}.made"  # it was created once; outside, for the whole folder may go
        self.reset = folder / f"{name}.reset"  # `corvo node reset` removed it; the next start begins without memory
        self.distrusted = folder / f"{name}.distrusted"  # why this replica must not serve again

    def distrust(self, reason: str) -> None:
        self.distrusted.write_text(reason)
        sync_directory(self._folder)

    def check_trusted(self) -> None:
        if self.reset.exists():
            self.distrusted.unlink(missing_ok=True)
        elif self.distrusted.exists():
            raise Corrupt(f"it stopped for good: {self.distrusted.read_text()}")
