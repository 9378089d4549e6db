"""A state on its way between two replicas on real LevelDBs: whole, once, over any link, and through crashes."""

import shutil
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.queries.cluster import TransferStatus
from corvo.state import keys
from corvo.state.tables import Applied, Tables
from shards import raft
from shards.group.messages import MessageBody, PeerMessage, group_of, seal, unseal
from shards.raft.messages import AppendReply, Hello
from shards.snapshots import streams, transfer
from shards.snapshots.messages import SnapshotEnded, SnapshotMessage, SnapshotOffer, SnapshotPiece, SnapshotWant
from shards.snapshots.transfer import SESSION_IDLE_NS, SILENCE_NS, Complete, Event, Sent, Snapshots, finish_install
from shards.storage.leveldb import Disk
from shards.storage.raft_log import RaftLog, encode
from tests.shards.rig import a_directory, records_of
from tests.support.builders import job_id

LEADER, FOLLOWER, THIRD = "node-1", "node-2", "node-3"
MEMBERS = raft.Membership(40, (LEADER, THIRD), learners=(FOLLOWER,))
APPLIED = Applied(index=50, term=4, now=7, position=9, hash=b"h" * 16)
MARKER = raft.SnapshotMarker(50, 4, MEMBERS)
SECOND = 1_000_000_000
GROUP = group_of("cluster", 0, 1)


def install_for(peer: str = FOLLOWER, term: int = 5, **changed: Any) -> raft.InstallSnapshot:
    message = raft.InstallSnapshot(LEADER, peer, 3, 2, term, index=60, index_term=5, membership=MEMBERS)
    return msgspec.structs.replace(message, **changed)


def state(jobs: int = 40, size: int = 100) -> dict[bytes, bytes | None]:
    """Something in many families; the last letter of a value tells its age."""
    found: dict[bytes, bytes | None] = {keys.job(job_id(n)): b"%04d" % n * (size // 4) for n in range(jobs)}
    found |= {keys.active("mail", job_id(n)): b"lease" for n in range(0, jobs, 7)}
    found |= {keys.retrying("mail", n, job_id(n)): b"" for n in range(1, jobs, 5)}
    found |= {keys.queue("mail"): b"queue", keys.node(LEADER): b"host:9400", keys.worker("w"): b"worker"}
    return found


def own_things(index: int) -> dict[bytes, bytes | None]:
    """What a replica keeps for itself."""
    return {
        keys.log_entry(index): b"an entry",
        keys.feed_record(index): b"a record",
        keys.LOG_META: encode((index, 1)),
        keys.HARD_STATE: encode(raft.HardState(5, LEADER, index)),
        keys.INCARNATION: encode(3),
        keys.FEED_FLOOR: encode(3),
    }


class End:
    """A replica as far as states are concerned."""

    def __init__(self, address_book: Path, name: str) -> None:
        self.name = name
        self.path = address_book / name / "00"
        self.identity = f"cluster/{name}/0/1/1".encode()
        self.posted: deque[PeerMessage] = deque()
        self.events: list[Event] = []
        self.path.parent.mkdir()
        Disk.create(self.path, self.identity)
        self.start()

    def start(self) -> None:
        self.was_swapped = finish_install(self.path)
        self.disk = Disk(self.path, self.identity, False)
        self.snapshots = Snapshots(self.disk, self.path, self.identity, self._post)

    def stop(self) -> None:
        self.snapshots.close()
        self.disk.close()
        self.posted.clear()

    def restart(self) -> None:
        self.stop()
        self.start()

    def _post(self, node: str, body: SnapshotMessage) -> bool:
        # Through the envelope, as on the wire.
        self.posted.append(PeerMessage(node, unseal(GROUP, seal(GROUP, self.name, body)).body))
        return True

    def take(self, sender: str, body: MessageBody, now_ns: int) -> None:
        event = self.snapshots.receive(sender, body, now_ns)
        if event is not None:
            self.events.append(event)

    def tick(self, now_ns: int) -> None:
        self.events += self.snapshots.tick(now_ns)

    def messages(self) -> list[MessageBody]:
        found = [posted.body for posted in self.posted]
        self.posted.clear()
        return found


class Pair:
    def __init__(self, address_book: Path, jobs: int = 40) -> None:
        self.now_ns = SECOND
        self.leader = End(address_book, LEADER)
        self.follower = End(address_book, FOLLOWER)
        self.pieces = 0
        self.leader.disk.write(
            state(jobs), own_things(51), {keys.APPLIED: encode(APPLIED), keys.MEMBERSHIP: encode(MEMBERS)}
        )
        self.follower.disk.write(
            own_things(2),
            {keys.job("old"): b"gone", keys.HARD_STATE: encode(raft.HardState(5, THIRD, 2))},
            {keys.APPLIED: encode(Applied(2, 1)), keys.INCARNATION: encode(8)},
        )

    def send(self, **changed: Any) -> None:
        self.leader.snapshots.send(install_for(**changed), self.now_ns)

    def carry(self, letters_max: int = 10_000) -> None:
        """Until there is silence."""
        for _ in range(letters_max):
            sender, receiver = self.leader, self.follower
            if not sender.posted:
                sender, receiver = receiver, sender
            if not sender.posted:
                return
            posted = sender.posted.popleft()
            self.pieces += isinstance(posted.body, SnapshotPiece)
            receiver.take(sender.name, posted.body, self.now_ns)

    def pass_time(self, ns: int) -> None:
        self.now_ns += ns
        self.leader.tick(self.now_ns)
        self.follower.tick(self.now_ns)

    def received(self) -> raft.InstallSnapshot:
        (event,) = self.follower.events
        assert isinstance(event, Complete)
        return event.install

    def finish(self, hard_state: raft.HardState | None = None) -> None:
        self.follower.snapshots.install(MARKER, hard_state)
        self.follower.restart()

    def close(self) -> None:
        self.leader.stop()
        self.follower.stop()


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PIECE_BYTES", 500)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.close()


# The whole way


def test_the_state_arrives_to_the_byte_and_nothing_else_does(pair: Pair) -> None:
    sent = records_of(pair.leader.disk)

    pair.send()
    pair.carry()
    pair.finish()

    disk = pair.follower.disk
    assert pair.pieces > 5 and pair.follower.was_swapped
    assert records_of(disk) == sent
    assert pair.leader.events == [Sent(FOLLOWER, True)]
    own = {key: value for key, value in disk.scan(b"\0", b"\xff") if key not in sent}
    assert own == {
        keys.APPLIED: encode(APPLIED),
        keys.LOG_META: encode((51, 4)),
        keys.MEMBERSHIP: encode(MEMBERS),
        keys.HARD_STATE: encode(raft.HardState(5, THIRD, 50)),  # its own promise, kept
        keys.INCARNATION: encode(8),
        keys.FEED_FLOOR: encode(50),
        keys.IDENTITY: pair.follower.identity,
    }


def test_the_message_tells_of_the_state_that_was_really_sent(pair: Pair) -> None:
    pair.send()
    pair.carry()

    install = pair.received()
    assert (install.index, install.index_term, install.membership) == (50, 4, MEMBERS)
    assert (install.sender, install.term) == (LEADER, 5)


def test_a_hard_state_that_is_newer_than_the_disk_is_the_one_that_is_kept(pair: Pair) -> None:
    pair.send()
    pair.carry()
    pair.finish(raft.HardState(6, LEADER, 2))

    assert pair.follower.disk.get(keys.HARD_STATE) == encode(raft.HardState(6, LEADER, 50))


def test_what_the_sender_writes_meanwhile_does_not_leak_in(pair: Pair) -> None:
    sent = records_of(pair.leader.disk)
    pair.send()

    pair.carry(5)
    pair.leader.disk.write(dict.fromkeys(sent, b"new"), {keys.job("zz"): b"new", keys.APPLIED: encode(Applied(51, 5))})
    pair.leader.disk.write(dict.fromkeys(list(sent)[::2]))
    pair.carry()
    pair.finish()

    assert records_of(pair.follower.disk) == sent
    assert pair.follower.disk.get(keys.APPLIED) == encode(APPLIED)


def test_a_record_larger_than_a_piece_travels_too(pair: Pair) -> None:
    large = {keys.job(job_id(900)): b"x" * 5_000, keys.job(job_id(901)): b"y" * 5_000, keys.worker("z"): b"z" * 5_000}
    pair.leader.disk.write(large)
    sent = records_of(pair.leader.disk)

    pair.send()
    pair.carry()
    pair.finish()

    assert records_of(pair.follower.disk) == sent


def test_a_state_without_a_record_is_one_empty_piece(pair: Pair) -> None:
    pair.leader.disk.write(dict.fromkeys(records_of(pair.leader.disk)))

    pair.send()
    pair.carry()
    pair.finish()

    assert pair.pieces == 1 and records_of(pair.follower.disk) == {}


def test_a_piece_ends_soon_after_it_has_enough(pair: Pair) -> None:
    pair.send()

    while pair.leader.posted or pair.follower.posted:
        pair.carry(1)
        for body in (posted.body for posted in pair.leader.posted):
            if isinstance(body, SnapshotPiece):
                sizes = [len(key) + len(value) for key, value in body.records]
                assert sum(sizes[:-1]) < 500


def test_a_replica_can_live_on_what_was_installed_and_tells_the_leader_so(pair: Pair) -> None:
    pair.leader.disk.write(dict.fromkeys(records_of(pair.leader.disk)))  # of which Tables would want sense
    pair.send()
    pair.carry()
    pair.finish()

    disk = pair.follower.disk
    log = RaftLog(disk)
    restored = log.restored(Tables(disk).applied.index, raft.Membership())
    core = raft.Raft(FOLLOWER, log.next_incarnation(), restored, log, raft.Options(), 1, pair.now_ns)
    pair.follower.events.clear()
    pair.follower.tick(pair.now_ns)
    core.step(pair.received(), pair.now_ns)

    ready = core.ready()
    assert ready is not None and ready.persist is not None and ready.persist.snapshot is None
    assert {type(message) for message in ready.send_now} == {Hello}
    (answer,) = ready.send_after
    assert isinstance(answer, AppendReply) and (answer.index, answer.rejected) == (50, False)
    pair.follower.restart()
    pair.follower.events.clear()
    pair.follower.tick(pair.now_ns)
    assert pair.follower.events == []  # said once


@pytest.mark.parametrize(("voters", "is_kept"), [((LEADER, FOLLOWER), True), ((LEADER, THIRD), False)])
def test_what_was_forgotten_stays_forgotten_until_the_group_has_taken_us_in_anew(
    pair: Pair, voters: tuple[str, ...], is_kept: bool
) -> None:
    members = raft.Membership(40, voters, learners=() if FOLLOWER in voters else (FOLLOWER,))
    pair.follower.disk.write({keys.FORGETFUL: b"1"})

    pair.send()
    pair.carry()
    pair.follower.snapshots.install(raft.SnapshotMarker(50, 4, members), None)
    pair.follower.restart()

    assert (pair.follower.disk.get(keys.FORGETFUL) is not None) == is_kept


# Links that lose, repeat and reorder


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_lost_repeated_and_reordered_letters_do_no_harm(data: st.DataObject) -> None:
    with a_directory() as address_book:
        pair = Pair(address_book, jobs=12)
        sent = records_of(pair.leader.disk)
        under_way: list[tuple[End, str, MessageBody]] = []
        pair.send()
        for step in range(400):
            for end, other in ((pair.leader, pair.follower), (pair.follower, pair.leader)):
                under_way += [(other, end.name, body) for body in end.messages()]
            if any(isinstance(event, Complete) for event in pair.follower.events):
                break
            fate = data.draw(st.sampled_from(["deliver", "lose", "repeat", "wait"])) if step < 100 else "deliver"
            if under_way and fate != "wait":
                place = data.draw(st.integers(0, len(under_way) - 1)) if step < 100 else 0
                receiver, sender, body = under_way[place] if fate == "repeat" else under_way.pop(place)
                if fate != "lose":
                    receiver.take(sender, body, pair.now_ns)
            else:
                pair.pass_time(SECOND)
                if not pair.leader.snapshots.transfers() or not pair.follower.snapshots.transfers():
                    pair.send()  # as Raft would, after a report or a timeout

        pair.finish()
        assert records_of(pair.follower.disk) == sent
        pair.close()


def test_a_piece_that_was_lost_is_asked_for_again_after_a_second(pair: Pair) -> None:
    pair.send()
    pair.carry(4)
    pair.leader.posted.clear()
    pair.follower.posted.clear()

    due = pair.follower.snapshots.next_tick_ns()
    assert due == pair.now_ns + SECOND
    pair.pass_time(SECOND - 1)
    assert pair.follower.messages() == []
    pair.pass_time(1)
    (want,) = (posted.body for posted in pair.follower.posted)
    pair.carry()

    assert isinstance(want, SnapshotWant) and want.after
    assert pair.received().index == 50


def test_a_damaged_piece_ends_the_stream_for_both(pair: Pair) -> None:
    pair.send()
    pair.carry(4)
    posted = pair.leader.posted.popleft()
    assert isinstance(posted.body, SnapshotPiece)
    (key, value), *rest = posted.body.records

    damaged = msgspec.structs.replace(posted.body, records=[(key, value + b"?"), *rest])
    pair.follower.take(LEADER, damaged, pair.now_ns)
    pair.carry()

    assert pair.leader.events == [Sent(FOLLOWER, False)]
    assert pair.follower.events == [] and pair.follower.snapshots.transfers() == []
    assert [file.name for file in pair.follower.path.parent.iterdir()] == ["00"]
    pair.send()
    pair.carry()
    assert pair.received().index == 50


@pytest.mark.parametrize(
    "damage",
    [
        lambda piece: msgspec.structs.replace(piece, is_last=True),
        lambda piece: msgspec.structs.replace(piece, records=[]),
        lambda piece: msgspec.structs.replace(piece, records=piece.records[:-1]),
        lambda piece: msgspec.structs.replace(piece, records=piece.records[::-1]),
    ],
)
def test_any_damage_is_noticed(pair: Pair, damage: Callable[[SnapshotPiece], SnapshotPiece]) -> None:
    pair.send()
    pair.carry(4)
    (posted,) = pair.leader.posted
    assert isinstance(posted.body, SnapshotPiece)

    pair.follower.take(LEADER, damage(posted.body), pair.now_ns)

    (ended,) = pair.follower.messages()
    assert isinstance(ended, SnapshotEnded) and not ended.ok


def test_a_marker_that_was_altered_on_the_way_is_noticed_with_the_first_piece(pair: Pair) -> None:
    pair.send()
    offer = pair.leader.posted.popleft().body
    assert isinstance(offer, SnapshotOffer)

    pair.follower.take(LEADER, msgspec.structs.replace(offer, applied=encode(Applied(50, 4))), pair.now_ns)
    pair.carry()

    assert pair.leader.events == [Sent(FOLLOWER, False)]


# Going on after a restart


def test_a_receiver_that_restarts_goes_on_where_it_was(pair: Pair) -> None:
    sent = records_of(pair.leader.disk)
    pair.send()
    pair.carry()
    whole, pair.pieces = pair.pieces, 0
    pair.follower.snapshots.discard()
    pair.follower.events.clear()

    pair.send()
    pair.carry(whole)
    before = pair.pieces
    assert before > 2
    pair.follower.restart()
    assert pair.follower.snapshots.next_tick_ns() == 0
    pair.pass_time(0)
    pair.carry()

    # The one that was under way is sent once more.
    assert whole <= pair.pieces <= whole + 1
    assert pair.received().receiver_incarnation == 0  # else the core of a later life would drop it
    pair.finish()
    assert records_of(pair.follower.disk) == sent


def test_a_new_request_for_the_same_peer_goes_on_with_the_stream(pair: Pair) -> None:
    pair.send()
    pair.carry(6)
    first = pair.leader.snapshots.transfers()
    pair.follower.restart()
    pair.leader.messages()

    pair.send(term=6)
    (posted,) = pair.leader.posted
    pair.carry()

    assert isinstance(posted.body, SnapshotOffer) and posted.body.session & 0xFFFF_FFFF == 1
    assert first[0].records > 0
    assert (pair.received().term, pair.received().index) == (6, 50)
    assert pair.leader.events == [Sent(FOLLOWER, True)]


def test_a_complete_state_is_offered_to_raft_again_after_a_restart(pair: Pair) -> None:
    pair.send()
    pair.carry()
    pair.follower.events.clear()

    pair.follower.restart()
    pair.follower.tick(pair.now_ns)

    assert pair.received().index == 50
    assert pair.follower.snapshots.next_tick_ns() is None
    pair.finish()
    assert pair.follower.was_swapped


def test_a_receiver_whose_sender_forgot_throws_its_part_away_and_takes_a_new_offer(pair: Pair) -> None:
    pair.send()
    pair.carry(6)
    pair.leader.restart()

    pair.pass_time(SECOND)
    pair.carry()
    assert pair.follower.snapshots.transfers() == []

    pair.send(sender_incarnation=4)
    pair.carry()
    assert pair.received().index == 50


def test_a_receiver_that_hears_nothing_gives_up(pair: Pair) -> None:
    pair.send()
    pair.carry(6)
    pair.follower.restart()

    for _ in range(SILENCE_NS // SECOND + 1):
        pair.pass_time(SECOND)
        pair.follower.messages()

    assert pair.follower.snapshots.transfers() == []
    assert pair.follower.snapshots.next_tick_ns() is None


def test_an_unreadable_part_is_thrown_away(pair: Pair) -> None:
    pair.send()
    pair.carry(6)
    incoming = pair.follower.path.with_name("00.incoming")
    pair.follower.stop()
    (incoming / "CURRENT").unlink()

    pair.follower.start()

    assert not incoming.exists() and pair.follower.snapshots.transfers() == []


def test_a_state_that_the_log_has_overtaken_is_not_asked_for(pair: Pair) -> None:
    pair.send()
    pair.carry(4)

    pair.follower.disk.write({keys.APPLIED: encode(Applied(50, 4))})
    pair.carry()

    assert pair.follower.events == [] and pair.leader.events == [Sent(FOLLOWER, True)]
    assert pair.follower.snapshots.transfers() == []


# Who may send what


def test_a_third_stream_is_refused_at_once(pair: Pair) -> None:
    for peer in ("a", "b", "c"):
        pair.send(peer=peer)

    assert pair.leader.snapshots.next_tick_ns() == 0
    pair.leader.tick(pair.now_ns)
    assert pair.leader.events == [Sent("c", False)]
    assert [posted.node for posted in pair.leader.posted] == ["a", "b"]


def test_a_stream_that_nobody_asks_for_is_forgotten(pair: Pair) -> None:
    pair.send()
    assert pair.leader.snapshots.next_tick_ns() == pair.now_ns + SESSION_IDLE_NS

    pair.leader.tick(pair.now_ns + SESSION_IDLE_NS - 1)
    assert pair.leader.events == []
    pair.leader.tick(pair.now_ns + SESSION_IDLE_NS)

    assert pair.leader.events == [Sent(FOLLOWER, False)]
    assert pair.leader.snapshots.transfers() == []


def test_a_request_after_a_long_silence_begins_anew(pair: Pair) -> None:
    pair.send()
    pair.leader.disk.write({keys.APPLIED: encode(Applied(55, 5))})
    pair.now_ns += SESSION_IDLE_NS

    pair.send()

    offers = [body for body in pair.leader.messages() if isinstance(body, SnapshotOffer)]
    assert [offer.install.index for offer in offers] == [50, 55]
    assert offers[0].session < offers[1].session


def test_a_letter_that_cannot_be_posted_is_a_failure(pair: Pair) -> None:
    snapshots = Snapshots(pair.leader.disk, pair.leader.path, pair.leader.identity, lambda node, body: False)

    snapshots.send(install_for(), 1)

    assert snapshots.tick(1) == [Sent(FOLLOWER, False)]
    snapshots.close()


def test_without_a_state_or_its_members_there_is_nothing_to_send(pair: Pair) -> None:
    pair.leader.disk.write({keys.MEMBERSHIP: None})
    pair.send()
    pair.leader.disk.write({keys.MEMBERSHIP: encode(MEMBERS), keys.APPLIED: None})
    pair.send()

    pair.leader.tick(pair.now_ns)

    assert pair.leader.events == [Sent(FOLLOWER, False)] * 2 and not pair.leader.posted


def test_a_group_that_never_changed_has_its_founders_from_the_message(pair: Pair) -> None:
    founders = raft.Membership(0, (LEADER, FOLLOWER))
    pair.leader.disk.write({keys.MEMBERSHIP: None})

    pair.send(membership=founders)
    pair.carry()

    assert pair.received().membership == founders


def test_a_later_leader_takes_over_and_an_earlier_one_does_not(pair: Pair) -> None:
    pair.send()
    offer = pair.leader.posted.popleft().body
    assert isinstance(offer, SnapshotOffer)
    of_third = msgspec.structs.replace(offer, session=1, install=install_for(sender=THIRD, term=6, index=70))
    pair.follower.take(LEADER, offer, 1)

    pair.follower.take(THIRD, of_third, 2)
    pair.follower.take(LEADER, offer, 3)

    assert pair.follower.snapshots.transfers() == [TransferStatus(THIRD, False, 70, 0, 0)]


def test_transfers_are_shown_at_both_ends(pair: Pair) -> None:
    sent = records_of(pair.leader.disk)
    size = sum(len(key) + len(value) for key, value in sent.items())
    pair.send()
    assert pair.leader.snapshots.transfers() == [TransferStatus(FOLLOWER, True, 50, 0, 0)]

    pair.carry()

    assert pair.leader.snapshots.transfers() == []
    assert pair.follower.snapshots.transfers() == [TransferStatus(LEADER, False, 50, len(sent), size)]


# Crashes between any two steps of the swap


class Crash(Exception):
    pass


STEPS = [
    (transfer.os, "fsync"),
    (transfer, "sync_directory"),
    (transfer.shutil, "rmtree"),
    (Path, "rename"),
    (Path, "unlink"),
    (Path, "touch"),
]


def crash_before(step: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the process die before the step of this number; the steps that were taken."""
    taken: list[str] = []

    def guarded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def do(*args: Any, **rest: Any) -> Any:
            if len(taken) == step:
                raise Crash(name)
            taken.append(name)
            return real(*args, **rest)

        return do

    for owner, name in STEPS:
        monkeypatch.setattr(owner, name, guarded(name, getattr(owner, name)))
    return taken


def test_a_crash_at_any_step_leaves_the_old_database_or_the_new_one(tmp_path: Path) -> None:
    outcomes: list[bool] = []
    for step in range(100):
        (tmp_path / str(step)).mkdir()
        pair = Pair(tmp_path / str(step), jobs=5)
        old, new = records_of(pair.follower.disk), records_of(pair.leader.disk)
        pair.send()
        pair.carry()

        is_whole = True
        with pytest.MonkeyPatch.context() as patched:
            crash_before(step, patched)
            try:
                pair.follower.snapshots.install(MARKER, None)
                pair.follower.disk.close()
                finish_install(pair.follower.path)
            except Crash:
                is_whole = False
        pair.follower.stop()
        pair.follower.start()

        found = records_of(pair.follower.disk)
        assert found in (old, new)
        assert pair.follower.disk.get(keys.IDENTITY) == pair.follower.identity
        outcomes.append(found == new)
        pair.follower.restart()
        assert records_of(pair.follower.disk) == found
        assert [file.name for file in pair.follower.path.parent.iterdir()] == ["00"]
        pair.close()
        shutil.rmtree(tmp_path / str(step))
        if is_whole:
            break

    assert len(outcomes) > 12 and outcomes == sorted(outcomes) and not outcomes[0]


@pytest.mark.parametrize("second", range(8))
def test_a_swap_that_crashes_twice_is_still_made(pair: Pair, second: int) -> None:
    new = records_of(pair.leader.disk)
    pair.send()
    pair.carry()
    pair.follower.snapshots.install(MARKER, None)
    pair.follower.stop()

    for step in (2, second):
        with pytest.MonkeyPatch.context() as patched:
            crash_before(step, patched)
            try:
                finish_install(pair.follower.path)
            except Crash:
                pass
    pair.follower.start()

    assert records_of(pair.follower.disk) == new


def test_without_a_mark_nothing_is_swapped_and_what_is_on_its_way_stays(pair: Pair) -> None:
    pair.send()
    pair.carry(6)

    pair.follower.stop()
    assert not finish_install(pair.follower.path)
    pair.follower.start()

    assert pair.follower.snapshots.transfers()[0].records > 0
    assert pair.follower.disk.get(keys.job("old")) == b"gone"


def test_a_state_that_raft_did_not_want_leaves_nothing_behind(pair: Pair) -> None:
    pair.send()
    pair.carry()

    pair.follower.snapshots.discard()
    pair.follower.snapshots.discard()

    assert [file.name for file in pair.follower.path.parent.iterdir()] == ["00"]


def test_after_an_installation_no_offer_is_taken_by_the_dying_process(pair: Pair) -> None:
    new = records_of(pair.leader.disk)
    pair.send()
    pair.carry()
    pair.follower.snapshots.install(MARKER, None)

    pair.send()
    pair.carry()
    pair.follower.restart()

    assert records_of(pair.follower.disk) == new
