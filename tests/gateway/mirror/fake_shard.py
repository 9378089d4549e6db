"""A shard for the mirror to follow: real tables over a map in memory, a real socket, no Raft and no disk.

It answers Pull and Scan as `corvo/queries/feed.py` promises, and misbehaves on demand: it loses answers, forgets its
feed, stops and comes back. Everything public may be called from the test's thread while the server's thread runs.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import zmq

from corvo.endpoint import Operation
from corvo.engine import apply_entry
from corvo.model.job import Worker
from corvo.queries.feed import FeedBatch, Pull, Scan, ScanPiece
from corvo.state import keys
from corvo.state.kv import MemoryKV
from corvo.state.tables import Tables
from corvo.wire import Reply, decode_ask, decode_calls, encode_replies, reply_to
from shards.feed import MIRRORED
from tests.support.builders import NOW

FAMILIES = tuple(sorted(MIRRORED))  # in the order of their bytes


class Parked(msgspec.Struct):
    peer: bytes
    call_id: int
    pull: Pull
    until: float


class FakeShard:
    def __init__(self, address: str) -> None:
        self.address = address
        self.name = address.rpartition("/")[2]
        self.kv = MemoryKV()
        self.tables = Tables(self.kv)
        self.now = NOW
        self.presence: list[Worker] = []
        self.pulls: list[Pull] = []
        self.scans: list[Scan] = []
        self.answers_to_lose = 0
        self.answers_lost = 0
        self.before_piece: Callable[[], object] = lambda: None
        self.after_piece: Callable[[], object] = lambda: None  # runs between two pieces of a scan
        self.lag_of_disk = 0  # pieces show the state of so many scans ago
        self.stale_pieces = 0
        self._disks: list[tuple[int, dict[bytes, bytes]]] = []
        self._feed: dict[int, list[bytes]] = {}
        self._floor = 0
        self._lock = threading.RLock()
        self._parked: list[Parked] = []
        self._thread: threading.Thread | None = None

    # The state

    def apply(self, *operations: Operation, at: int | None = None) -> list[Any]:
        with self._lock:
            self.now = self.now + 1_000 if at is None else at
            index = self.tables.applied.index + 1
            results, _ = apply_entry(self.tables, index, 1, self.now, list(operations))
            self._store(index)
        self._wake()
        return results

    def put(self, records: dict[bytes, bytes | None]) -> None:
        """An entry that changes these records and nothing else; None deletes."""
        with self._lock:
            index = self.tables.applied.index + 1
            self.tables.begin(index, 1, self.now)
            for key, value in records.items():
                self.tables.put(key, value)
            self.tables.seal()
            self._store(index)
            self.tables = Tables(self.kv)
        self._wake()

    def delete(self, *gone: bytes) -> None:
        self.put(dict.fromkeys(gone))

    def _store(self, index: int) -> None:
        writes = self.tables.take_writes()
        self._feed[index] = [key for key in writes if key.startswith(FAMILIES)]
        self.kv.write(writes)

    @property
    def applied_index(self) -> int:
        return self.tables.applied.index

    def forget_feed(self) -> None:
        """From here on whoever stands before this moment must scan."""
        with self._lock:
            self._feed.clear()
            self._floor = self.applied_index

    def records(self) -> dict[bytes, bytes]:
        with self._lock:
            return dict(self._scan(b""))

    def _scan(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        for prefix in FAMILIES:
            yield from self.kv.scan(max(start, prefix), keys.prefix_end(prefix))

    # The server

    def start(self) -> None:
        self._stopping = False
        self._reader, self._writer = socket.socketpair()
        is_bound = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(is_bound,), daemon=True)
        self._thread.start()
        assert is_bound.wait(5)

    def stop(self) -> None:
        if self._thread is not None:
            self._stopping = True
            self._wake()
            self._thread.join(5)
            assert not self._thread.is_alive()
            self._thread = None
            self._reader.close()
            self._writer.close()

    def _wake(self) -> None:
        if self._thread is not None:
            self._writer.send(b"!")

    def _serve(self, is_bound: threading.Event) -> None:
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.setsockopt(zmq.LINGER, 0)
            router.bind(self.address)
            is_bound.set()
            self._parked = []
            poller = zmq.Poller()
            poller.register(router, zmq.POLLIN)
            poller.register(self._reader.fileno(), zmq.POLLIN)
            while not self._stopping:
                until = min((parked.until for parked in self._parked), default=time.monotonic() + 1)
                ready = dict(poller.poll(max(0, (until - time.monotonic()) * 1000)))
                if self._reader.fileno() in ready:
                    self._reader.recv(1024)
                if router in ready:
                    peer, message = router.recv_multipart()
                    for call in decode_calls(message):
                        self._parked = [parked for parked in self._parked if parked.call_id != call.id]
                        if call.ask:
                            self._take(router, peer, call.id, decode_ask(call.ask))
                with self._lock:
                    self._answer_parked(router)

    def _take(self, router: "zmq.Socket[bytes]", peer: bytes, call_id: int, ask: Any) -> None:
        with self._lock:
            if isinstance(ask, Scan):
                self.scans.append(ask)
                self.before_piece()
                self._send(router, peer, reply_to(call_id, self._piece(ask)))
                self.after_piece()
            else:
                self.pulls.append(ask)
                self._parked.append(Parked(peer, call_id, ask, time.monotonic() + ask.wait_ms / 1000))

    def _piece(self, scan: Scan) -> ScanPiece:
        as_of, disk = self._disk()
        records = []
        for record in sorted(disk.items()):
            if record[0] < scan.start:
                continue
            if len(records) == scan.records_max:
                return ScanPiece(as_of, records, keys.after(records[-1][0]))
            records.append(record)
        return ScanPiece(as_of, records, b"")

    def _disk(self) -> tuple[int, dict[bytes, bytes]]:
        """What a scan sees: like a real shard's disk it may be behind what was applied."""
        self._disks.append((self.applied_index, dict(self._scan(b""))))
        seen = self._disks[max(0, len(self._disks) - 1 - self.lag_of_disk)]
        self.stale_pieces += seen[0] < self.applied_index
        return seen

    def _answer_parked(self, router: "zmq.Socket[bytes]") -> None:
        for parked in list(self._parked):
            batch = self._batch(parked.pull)
            if batch.is_gap or batch.upto > parked.pull.after or time.monotonic() >= parked.until:
                self._parked.remove(parked)
                self._send(router, parked.peer, reply_to(parked.call_id, batch))

    def _batch(self, pull: Pull) -> FeedBatch:
        if pull.after < self._floor or pull.after > self.applied_index:
            return FeedBatch(self.applied_index, [], is_gap=True)
        changed: dict[bytes, bytes | None] = {}
        upto = pull.after
        for index in range(pull.after + 1, self.applied_index + 1):
            changed.update((key, self.kv.get(key)) for key in self._feed[index])
            upto = index
            if len(changed) >= pull.records_max:
                break
        return FeedBatch(upto, list(changed.items()), presence=self.presence)

    def _send(self, router: "zmq.Socket[bytes]", peer: bytes, reply: Reply) -> None:
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            self.answers_lost += 1
            return
        router.send_multipart([peer, encode_replies([reply])])
