"""The published database, which readers see, and the one being built beside it, if any.

    published  building
        ·         ·      unreachable: opened again later (PostgreSQL)
        ·         ×      no trusted database: readers wait
        ×         ·      the normal case
        ×         ×      a requested rebuild: changes go into both

A fault of the database being built ends the rebuild. `follow.py` handles a fault of the published one.
"""

import time
from collections.abc import Sequence
from typing import Any

import structlog

from gateway.mirror.shard_writes import Cursor, ShardWrite
from gateway.mirror.store import Database, Store

AGAIN_S, AGAIN_S_MAX = 0.2, 10.0  # exponential backoff while a database is unreachable

log = structlog.get_logger()


class Databases:
    def __init__(self, store: Store[Any]) -> None:
        self.store = store
        self.published: Database | None = None
        self.building: Database | None = None
        self.open_at = 0.0  # not before
        self._again_s = AGAIN_S
        self._begun_at = 0.0
        self._rows = 0

    @property
    def is_open(self) -> bool:
        return self.published is not None or self.building is not None

    def open(self) -> None:
        """Opens the published database if it can be trusted."""
        self.published = self.store.open_trusted()
        log.info("read database opened", database=self.store.name, generation=self.published.generation)

    def build(self, reason: str, *, is_fault: bool) -> None:
        say = log.warning if is_fault else log.info
        say("rebuild of the read database begins", database=self.store.name, reason=reason)
        self._begun_at, self._rows = time.monotonic(), 0
        self.building = self.store.begin(time.time_ns())

    def distrust(self) -> None:
        """Removes the published database, if any. A rebuild in progress goes on."""
        if self.published is not None:
            self.published.close()
            self.published = None
        self.store.remove_published()

    def write(self, turns: Sequence[ShardWrite]) -> None:
        if self.building is not None:
            self._rows += sum(turn.rows.count for turn in turns)
            try:
                self.building.write(turns)
            except self.store.faults as error:
                self._give_up_building(error)
        of_published = [turn for turn in turns if not turn.is_copy]
        if self.published is not None and of_published:
            self.published.write(of_published)
        self._again_s = AGAIN_S

    def fall_behind(self, shard: int) -> None:
        for database in (self.published, self.building):
            if database is not None:
                database.fall_behind(shard)

    def publish(self, cursors: Sequence[Cursor]) -> None:
        """Replaces the published database with the finished build."""
        building, former = self.building, self.published
        assert building is not None
        try:
            building.put_cursors(cursors)
            self.store.publish(building, time.time_ns())
        except self.store.faults as error:
            self._give_up_building(error)
            return
        self.published, self.building = building, None
        if former is not None:
            self.store.retire(former)
        seconds = round(time.monotonic() - self._begun_at, 3)
        log.info("rebuild of the read database ended", database=self.store.name, rows=self._rows, seconds=seconds)

    def _give_up_building(self, error: Exception) -> None:
        if self.published is None:
            raise error
        log.warning("rebuild of the read database failed", database=self.store.name, reason=str(error).strip())
        building, self.building = self.building, None
        try:
            self.store.abandon(building)
        except self.store.faults:
            pass  # the next attempt removes what is left

    def lose(self, reason: str) -> None:
        """The database is unreachable: closes everything, to open it again later."""
        log.warning("read database out of reach", database=self.store.name, reason=reason, again_in_s=self._again_s)
        for database in (self.published, self.building):
            if database is not None:
                database.close()
        self.published = self.building = None
        self.store.release()
        self.open_at = time.monotonic() + self._again_s
        self._again_s = min(2 * self._again_s, AGAIN_S_MAX)

    def close(self) -> None:
        if self.building is not None:
            self.building.close()
            log.info("stopped during a rebuild")
        if self.published is not None:
            self.store.close_clean(self.published)
            log.info("read database closed", database=self.store.name)
