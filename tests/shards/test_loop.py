"""A shard as a real process: `python -m shards` in a directory of its own, talked to over ZeroMQ.

Few and slow on purpose; everything that needs no process is tested in `test_replica.py`.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import zmq

from corvo.endpoint import Operation, Query
from corvo.model.errors import Refusal
from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.queries.cluster import GetStatus
from corvo.queries.feed import Pull
from corvo.queries.job import GetJob
from corvo.runtime.process import RUN, Identity, write_identity, write_settings
from corvo.runtime.settings import Settings
from corvo.wire import Call, decode_replies, decode_result, encode, encode_calls
from tests.support.builders import ack, enqueue, fetch, job_id

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
PATIENCE_MS = 15_000  # how long a test waits for what must happen; a machine under load is slow


class Node:
    """A data directory with a shard in it. Processes are ended by their handles."""

    def __init__(self) -> None:
        self.data_dir = Path(tempfile.mkdtemp(prefix="c-", dir="/tmp"))  # an ipc path has room for 107 bytes
        (self.data_dir / RUN).mkdir()
        write_settings(Settings(data_dir=str(self.data_dir), shards=1, log_format="json"))
        write_identity(self.data_dir, Identity("cluster", "node-1", 1))
        self.database = self.data_dir / "shards" / "00"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.context: zmq.Context[Any] = zmq.Context()

    def start(
        self, prepare: Callable[[], None] | None = None, program: tuple[str, ...] = ("-m", "shards")
    ) -> subprocess.Popen[bytes]:
        output = (self.data_dir / f"output-{len(self.processes)}").open("wb")
        process = subprocess.Popen(
            [sys.executable, *program, "--run-dir", RUN, "--shard", "0"],
            cwd=self.data_dir,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=prepare,
        )
        output.close()
        self.processes.append(process)
        return process

    def output(self, process: subprocess.Popen[bytes]) -> str:
        return (self.data_dir / f"output-{self.processes.index(process)}").read_text()

    def caller(self) -> "Caller":
        return Caller(self.context, f"ipc://{self.data_dir}/{RUN}/shard-0.ipc")

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.context.destroy(linger=0)
        shutil.rmtree(self.data_dir)


class Caller:
    def __init__(self, context: "zmq.Context[Any]", address: str) -> None:
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 10)
        self.socket.connect(address)
        self.asked: dict[int, type[Operation] | type[Query]] = {}
        self.answers: dict[int, Any] = {}

    def send(self, *asks: Operation | Query) -> list[int]:
        first = len(self.asked) + 1
        self.asked.update((first + place, type(ask)) for place, ask in enumerate(asks))
        self.socket.send(
            encode_calls([Call(first + place, PATIENCE_MS, encode(ask)) for place, ask in enumerate(asks)])
        )
        return list(range(first, first + len(asks)))

    def receive(self, timeout_ms: int = PATIENCE_MS) -> bool:
        """Whether a message came."""
        if not self.socket.poll(timeout_ms):
            return False
        for reply in decode_replies(self.socket.recv()):
            try:
                self.answers[reply.id] = decode_result(self.asked[reply.id], reply)
            except Refusal as refusal:
                self.answers[reply.id] = refusal
        return True

    def ask(self, *asks: Operation | Query) -> list[Any]:
        numbers = self.send(*asks)
        while not all(number in self.answers for number in numbers):
            assert self.receive(), "the shard does not answer"
        return [self.answers[number] for number in numbers]

    def one(self, ask: Operation | Query) -> Any:
        return self.ask(ask)[0]


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    yield node
    node.close()


def ends(process: subprocess.Popen[bytes], within_s: float = PATIENCE_MS / 1000) -> int:
    return process.wait(within_s)


def assert_refused(node: Node, process: subprocess.Popen[bytes], sentence: str) -> None:
    code = ends(process)
    output = node.output(process)
    assert code == 1, output
    assert sentence in output
    assert "Traceback" not in output


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(process: subprocess.Popen[bytes]) -> int:
    """Of this program alone: what getrusage says begins with the peak of the process that started it."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def test_a_shard_serves_whatever_strangers_send(node: Node) -> None:
    process = node.start()
    caller, stranger = node.caller(), node.caller()
    assert caller.one(enqueue(1))

    for garbage in (
        b"",
        b"\xc1",
        b"\xff" * 1_000,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x91" * 100_000,  # deep enough to exhaust a recursive reader
        encode([2, []]),
        encode([99, [[1, 1, b""]]]),
        encode([1, [["not a number", 1, b""]]]),
        encode([1, [[1, 1]]]),
    ):
        stranger.socket.send(garbage)
    stranger.socket.send_multipart([b"one", b"two", b"three"])
    stranger.socket.send(encode_calls([Call(7, 1_000, b"\xc0"), Call(8, 1_000, b"")]))
    stranger.asked[7] = GetStatus

    assert stranger.receive()
    assert stranger.answers[7].code == "BAD_REQUEST"
    assert caller.one(GetJob(job_id(1))).job.id == job_id(1)
    assert process.poll() is None
    output = node.output(process)
    assert output.count("message refused") == 10 and "wire version 99" in output


def test_a_frame_beyond_the_limit_is_refused_and_the_shard_lives_on(node: Node) -> None:
    process = node.start()
    caller, stranger = node.caller(), node.caller()
    assert caller.one(enqueue(1))
    monitor = stranger.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    before = peak_bytes(process)

    stranger.socket.send(bytes(MESSAGE_BYTES_MAX + 1))

    assert monitor.poll(PATIENCE_MS), "the line is cut before the frame is read"
    stranger.socket.disable_monitor()
    assert caller.one(GetJob(job_id(1))).job.id == job_id(1)
    assert process.poll() is None
    assert peak_bytes(process) - before < MESSAGE_BYTES_MAX // 2, "refused before anything is allocated for it"


def test_a_caller_that_went_away_does_not_hinder_the_others(node: Node) -> None:
    process = node.start()
    caller, leaving = node.caller(), node.caller()
    leaving.send(fetch("mail", wait_ms=60_000))
    while caller.one(GetStatus()).fetches_parked == 0:
        pass

    leaving.socket.close(0)
    caller.ask(enqueue(1), enqueue(2))

    assert len(caller.one(fetch("mail", claim=2))) == 1
    assert process.poll() is None


def test_what_was_acknowledged_survives_kill_9_in_the_middle_of_traffic(node: Node) -> None:
    process = node.start()
    caller = node.caller()
    for number in range(1, 1_001, 5):
        caller.send(*(enqueue(number + step, payload=b"%d" % (number + step)) for step in range(5)))

    while len(caller.answers) < 300:
        assert caller.receive()
    process.kill()
    ends(process)
    while caller.receive(0):
        pass
    acknowledged = list(caller.answers)
    node.start()

    late = node.caller()
    records = late.ask(*(GetJob(job_id(number)) for number in acknowledged))
    assert [record.job.payload for record in records] == [b"%d" % number for number in acknowledged]
    # The gateway repeats everything that it does not know the end of: each job exists once.
    late.ask(*(enqueue(number, payload=b"%d" % number) for number in range(1, 1_001)))
    claimed = [one.job_id for claim in (1, 2) for one in late.one(fetch("mail", claim=claim, count=512))]
    assert sorted(claimed) == [job_id(number) for number in range(1, 1_001)]


def test_a_second_process_for_the_same_shard_is_refused_and_told_who_serves_it(node: Node) -> None:
    first = node.start()
    assert node.caller().one(GetStatus())

    second = node.start()

    assert_refused(node, second, "another process serves this shard")
    assert f'"{first.pid}"' in node.output(second)
    assert node.caller().one(GetStatus()).role == "leader"


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_shard_that_is_asked_to_stop_stops_cleanly_within_two_seconds(node: Node, sign: signal.Signals) -> None:
    process = node.start()
    caller = node.caller()
    caller.ask(enqueue(1), fetch("mail"), ack(1))
    caller.send(fetch("mail", claim=2, wait_ms=60_000))
    began = monotonic()

    process.send_signal(sign)

    assert ends(process) == 0, node.output(process)
    assert monotonic() - began < 2
    assert '"stopped"' in node.output(process)


def test_an_idle_shard_takes_no_measurable_time_of_the_processor(node: Node) -> None:
    process = node.start()
    caller, mirror = node.caller(), node.caller()
    caller.ask(enqueue(1), fetch("mail", lease_ms=3_600_000))
    caller.send(fetch("mail", claim=2, wait_ms=60_000))
    upto = caller.one(GetStatus()).applied_index
    mirror.send(Pull(upto, 60_000, 100))
    while caller.one(GetStatus()).fetches_parked == 0:
        pass

    before = cpu_seconds(process)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)  # the window that is measured

    assert cpu_seconds(process) - before < 0.06, "3 % of a core"


def test_a_shard_is_idle_again_after_a_signal_that_does_not_end_it(node: Node) -> None:
    program = "import signal; signal.signal(signal.SIGUSR1, lambda *_: None); from shards.__main__ import main; main()"
    process = node.start(program=("-c", program))
    caller = node.caller()
    caller.one(GetStatus())

    process.send_signal(signal.SIGUSR1)
    before = caller.one(GetStatus()).turns_total
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)  # the window that is measured

    assert caller.one(GetStatus()).turns_total - before < 50, "the wake-up pipe is read: a busy loop takes thousands"


def test_a_database_that_vanished_is_missed_and_not_made_anew(node: Node) -> None:
    process = node.start()
    node.caller().one(enqueue(1))
    process.kill()
    ends(process)
    kept = node.data_dir / "elsewhere"
    node.database.rename(kept)

    assert_refused(node, node.start(), "is gone, but this replica has existed")
    assert not node.database.exists()

    node.database.mkdir()
    assert_refused(node, node.start(), "cannot be opened")

    shutil.rmtree(node.database)
    kept.rename(node.database)
    node.start()
    assert node.caller().one(GetJob(job_id(1))).job.id == job_id(1)


def test_damage_on_disk_stops_the_shard_with_a_sentence(node: Node) -> None:
    process = node.start()
    node.caller().ask(*(enqueue(number) for number in range(1, 50)))
    process.kill()
    ends(process)
    log = max(node.database.glob("*.log"), key=lambda file: file.name)
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)

    assert_refused(node, node.start(), "checksum mismatch")


def test_data_of_another_cluster_or_of_none_is_refused(node: Node) -> None:
    process = node.start()
    node.caller().one(enqueue(1))
    process.terminate()
    ends(process)

    write_identity(node.data_dir, Identity("another", "node-1", 1))
    assert_refused(node, node.start(), "belongs to")

    (node.data_dir / "identity.json").unlink()
    assert_refused(node, node.start(), "has no identity.json")


def test_a_full_disk_ends_the_shard_and_what_it_acknowledged_is_there_afterwards(node: Node) -> None:
    """Trap 46: nothing is acknowledged after a write that failed."""

    def no_file_beyond_200_kib() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200 * 1024, resource.RLIM_INFINITY))

    process = node.start(prepare=no_file_beyond_200_kib)
    caller = node.caller()
    for number in range(1, 101):
        caller.send(enqueue(number, payload=b"x" * 10_000))
        while number not in caller.answers and process.poll() is None:
            caller.receive(50)

    assert_refused(node, process, "DiskFailed")
    while caller.receive(0):
        pass
    acknowledged = list(caller.answers)
    node.start()

    assert 0 < len(acknowledged) < 100
    records = node.caller().ask(*(GetJob(job_id(number)) for number in acknowledged))
    assert [record.job.id for record in records] == [job_id(number) for number in acknowledged]
