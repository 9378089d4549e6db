"""Deliberate bugs, one for each trap that the simulator must not overlook (reference/raft.md, section 3).

Each is a context manager that replaces something of `shards.raft`, of the machine or of the simulated host, and puts
it back. None lives in production code. The hunt runs seeds under each until one fails:

    python -m tests.simulation.mutants [--seeds 2000] [--jobs 2] [name ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

import msgspec

from corvo.ops.jobs.fetch import Fetch
from corvo.state import keys
from corvo.wire import operations_of
from shards.raft import HardState
from shards.raft import quorum as quorum_module
from shards.raft import voting as voting_module
from shards.raft.candidate import Candidate, Canvass
from shards.raft.core import Raft
from shards.raft.follower import Follower
from shards.raft.incarnations import Incarnations, Verdict
from shards.raft.leader import Leader
from shards.raft.log import Log
from shards.raft.messages import AppendReply, Heartbeat, TimeoutNow, Vote, VoteReply
from shards.raft.progress import Mode, Progress
from shards.raft.quorum import Tally
from shards.raft.reads import Reads
from shards.raft.ready import Outbox, SnapshotMarker
from shards.raft.replication import Replication
from tests.simulation.clock import MS
from tests.simulation.disk import Disk, Write
from tests.simulation.host import Host
from tests.simulation.run import run_plan
from tests.simulation.workload import Clients, make_plan
from tests.support.builders import enqueue, job_id

Mutant = Callable[[], AbstractContextManager[None]]
MUTANTS: dict[str, Mutant] = {}


@contextmanager
def replaced(owner: Any, **news: Any) -> Iterator[None]:
    olds = {name: owner.__dict__[name] for name in news}
    for name, new in news.items():
        setattr(owner, name, new)
    try:
        yield
    finally:
        for name, old in olds.items():
            setattr(owner, name, old)


def mutant(function: Callable[[], AbstractContextManager[None]]) -> Mutant:
    MUTANTS[function.__name__] = function
    return function


def _sends_now(owner: Any, name: str, kind: type) -> AbstractContextManager[None]:
    """Messages of this kind no longer wait for the disk."""
    original = owner.__dict__[name]

    @wraps(original)
    def hasty(self: Any, *args: Any) -> Any:
        result = original(self, *args)
        outbox = self.outbox if isinstance(self, Raft) else self.raft.outbox
        outbox.send_now += [message for message in outbox.send_after if isinstance(message, kind)]
        outbox.send_after = [message for message in outbox.send_after if not isinstance(message, kind)]
        return result

    return replaced(owner, **{name: hasty})


# --- commitment and votes


@mutant
def trap_01_commits_old_terms() -> AbstractContextManager[None]:
    def maybe_commit(self: Leader) -> None:
        index = self.replication.agreed_match()
        if index > self.raft.log.commit:
            self.raft.log.commit_up_to(index)
            if not self._has_committed:
                self._has_committed = True
                self.reads.term_committed()

    return replaced(Leader, _maybe_commit=maybe_commit)


@mutant
def trap_02_votes_before_the_disk() -> AbstractContextManager[None]:
    return _sends_now(voting_module, "consider", VoteReply)


@mutant
def trap_03_forgets_its_term() -> AbstractContextManager[None]:
    original = Disk.restored

    def restored(self: Disk) -> Any:
        found = original(self)
        return msgspec.structs.replace(found, hard_state=HardState(found.last_term, "", found.hard_state.commit))

    return replaced(Disk, restored=restored)


@mutant
def trap_03_forgets_its_vote() -> AbstractContextManager[None]:
    original = Disk.restored

    def restored(self: Disk) -> Any:
        found = original(self)
        return msgspec.structs.replace(found, hard_state=msgspec.structs.replace(found.hard_state, vote=""))

    return replaced(Disk, restored=restored)


@mutant
def trap_04_acknowledges_before_the_disk() -> AbstractContextManager[None]:
    return _sends_now(Follower, "_append", AppendReply)


@mutant
def trap_05_asks_for_votes_before_the_disk() -> AbstractContextManager[None]:
    return _sends_now(Candidate, "begin", Vote)


@mutant
def trap_06_listens_to_former_lives() -> AbstractContextManager[None]:
    def judge(self: Incarnations, message: Any) -> Verdict:
        self._known[message.sender] = message.sender_incarnation
        return Verdict.ADMIT

    return replaced(Incarnations, judge=judge)


@mutant
def trap_13_counts_votes_without_names() -> AbstractContextManager[None]:
    original = Canvass.record

    def record(self: Any, voter: str, granted: bool) -> None:
        if granted and self.votes.get(voter):
            others = [name for name in self.raft.membership.voters if name not in self.votes]
            voter = others[0] if others else voter
        original(self, voter, granted)

    return replaced(Canvass, record=record)


@mutant
def trap_15_leader_votes_for_another() -> AbstractContextManager[None]:
    return replaced(voting_module, _may_vote_for=lambda raft, candidate: True)


@mutant
def trap_16_half_is_a_majority() -> AbstractContextManager[None]:
    def tally(voters: Any, votes: Any) -> Tally:
        needed = max(len(voters) // 2, 1)
        granted = sum(1 for voter in voters if votes.get(voter) is True)
        return Tally.WON if not voters or granted >= needed else Tally.PENDING

    return replaced(quorum_module, tally=tally)


@mutant
def trap_16_votes_for_shorter_logs() -> AbstractContextManager[None]:
    return replaced(Log, is_behind_or_equal=lambda self, last_index, last_term: True)


@mutant
def trap_16_compares_length_before_term() -> AbstractContextManager[None]:
    def is_behind_or_equal(self: Log, last_index: int, last_term: int) -> bool:
        return last_index >= self.last_index

    return replaced(Log, is_behind_or_equal=is_behind_or_equal)


@mutant
def trap_17_disturbs_a_living_leader() -> AbstractContextManager[None]:
    def is_bound(raft: Raft, is_transfer: bool) -> bool:
        return raft.has_just_started()

    return replaced(voting_module, _is_bound=is_bound)


@mutant
def trap_19_leaves_lower_terms_unanswered() -> AbstractContextManager[None]:
    return replaced(voting_module, answer_lower_term=lambda raft, message: None)


# --- the log


@mutant
def trap_07_truncates_what_matches() -> AbstractContextManager[None]:
    def accept(self: Log, entries: list[Any]) -> int | None:
        cut = None
        if entries and entries[0].index <= self.last_index:
            cut = entries[0].index - 1
            self._cut(cut)
        for entry in entries:
            self.append(entry)
        return cut

    return replaced(Log, accept=accept)


@mutant
def trap_08_commits_an_unverified_tail() -> AbstractContextManager[None]:
    original = Follower._append

    def append(self: Follower, message: Any) -> None:
        original(self, message)
        self.raft.log.commit_up_to(min(message.commit, self.raft.log.last_index))

    return replaced(Follower, _append=append)


@mutant
def trap_09_heartbeats_commit_beyond_the_match() -> AbstractContextManager[None]:
    def send_heartbeats(self: Replication, round_number: int) -> None:
        raft = self.raft
        self.own.round = round_number
        for peer in self.peers:
            header = raft.header(peer.replica)
            message = Heartbeat(*header, commit=raft.log.commit, round=round_number, point=raft.points.latest)
            raft.outbox.send_now.append(message)

    return replaced(Replication, send_heartbeats=send_heartbeats)


@mutant
def trap_10_commit_index_goes_back() -> AbstractContextManager[None]:
    def commit_up_to(self: Log, index: int) -> None:
        self.commit = max(min(index, self.last_index), self.applying)

    return replaced(Log, commit_up_to=commit_up_to)


@mutant
def trap_11_match_goes_back() -> AbstractContextManager[None]:
    def accepted(self: Progress, index: int) -> bool:
        is_news = index > self.match
        self.match, self.next = index, max(self.next, index + 1)
        return is_news

    return replaced(Progress, accepted=accepted)


@mutant
def trap_12_believes_answers_of_other_terms() -> AbstractContextManager[None]:
    original = voting_module.answer_lower_term

    def answer(raft: Raft, message: Any) -> None:
        if isinstance(message, AppendReply):
            raft.stance.step(message)
        else:
            original(raft, message)

    return replaced(voting_module, answer_lower_term=answer)


@mutant
def trap_37_accepts_an_old_snapshot() -> AbstractContextManager[None]:
    def install(self: Follower, message: Any) -> None:
        raft, log = self.raft, self.raft.log
        log.commit = log.applied = log.applying = min(log.commit, message.index - 1)
        log.restore(message.index, message.index_term)
        raft.outbox.cut(0)
        raft.outbox.snapshot = SnapshotMarker(message.index, message.index_term, message.membership)
        raft.restore_membership(message.membership)
        self.verified = message.index
        self._reply(message.sender, message.index)

    return replaced(Follower, _install=install)


@mutant
def trap_38_snapshot_discards_a_matching_tail() -> AbstractContextManager[None]:
    original = Follower._install

    def install(self: Follower, message: Any) -> None:
        log = self.raft.log
        if message.index <= log.commit or not log.matches(message.index, message.index_term):
            original(self, message)
            return
        matches = Log.matches
        with replaced(Log, matches=lambda self, index, term: False):
            original(self, message)
        assert Log.matches is matches

    return replaced(Follower, _install=install)


@mutant
def trap_42_old_writes_mark_new_entries_stable() -> AbstractContextManager[None]:
    return replaced(Outbox, cut=lambda self, after: None)


# --- reads and leases


@mutant
def trap_21_reads_before_its_own_commit() -> AbstractContextManager[None]:
    original = Reads.add
    return replaced(Reads, add=lambda self, read, may_answer: original(self, read, True))


@mutant
def trap_22_an_earlier_round_confirms_a_read() -> AbstractContextManager[None]:
    original = Replication.heartbeat_reply
    return replaced(Replication, heartbeat_reply=lambda self, peer, round_number: original(self, peer, self.own.round))


@mutant
def trap_22_reads_without_a_quorum() -> AbstractContextManager[None]:
    def add(self: Reads, read: object, may_answer: bool) -> None:
        if may_answer:
            self._answer(read, self.raft.log.commit)
        else:
            self._early.append(read)

    return replaced(Reads, add=add)


@mutant
def trap_23_reads_before_it_has_applied() -> AbstractContextManager[None]:
    return replaced(Raft, release_read=lambda self, context, index: self.outbox.reads.append((context, index)))


@mutant
def trap_24_lease_counted_from_the_answer() -> AbstractContextManager[None]:
    original = Reads.confirm

    def confirm(self: Reads) -> None:
        before = self._lease_start_ns
        original(self)
        if self._lease_start_ns != before:
            self._lease_start_ns = self.raft.now_ns

    return replaced(Reads, confirm=confirm)


@mutant
def trap_24_lease_checked_before_the_read() -> AbstractContextManager[None]:
    return replaced(Host, is_lease_over=lambda self, lease: False)


@mutant
def trap_25_lease_survives_a_transfer() -> AbstractContextManager[None]:
    def lease_until_ns(self: Leader) -> int:
        return self.reads.lease_until_ns() if self.raft.options.lease_reads else 0

    return replaced(Leader, lease_until_ns=lease_until_ns)


@mutant
def trap_26_votes_right_after_a_restart() -> AbstractContextManager[None]:
    original = Raft.__init__

    def init(self: Raft, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        self._started_until_ns = self.promise_until_ns = 0

    return replaced(Raft, __init__=init)


# --- members and transfer


@mutant
def trap_27_changes_members_before_its_own_commit() -> AbstractContextManager[None]:
    original = Leader.propose_membership

    def propose(self: Leader, *args: Any) -> Any:
        before, self._has_committed = self._has_committed, True
        try:
            return original(self, *args)
        finally:
            self._has_committed = before

    return replaced(Leader, propose_membership=propose)


@mutant
def trap_28_campaigns_over_unapplied_members() -> AbstractContextManager[None]:
    return replaced(Log, has_committed_unapplied_membership=lambda self: False)


@mutant
def trap_29_two_changes_at_once() -> AbstractContextManager[None]:
    return replaced(Log, has_unapplied_membership=lambda self: False)


@mutant
def trap_29_joint_phase_counts_one_majority() -> AbstractContextManager[None]:
    def agreed_match(self: Replication) -> int:
        return quorum_module.agreed([peer.match for peer in self._voters])

    return replaced(Replication, agreed_match=agreed_match)


@mutant
def trap_31_a_removed_leader_leads_on() -> AbstractContextManager[None]:
    return replaced(Leader, _retire=lambda self: None)


@mutant
def trap_32_promotes_a_newcomer_without_a_log() -> AbstractContextManager[None]:
    return replaced(Replication, is_caught_up=lambda self, peer: True)


@mutant
def trap_34_hands_over_to_one_that_is_behind() -> AbstractContextManager[None]:
    def hand_over(self: Leader, peer: Progress) -> None:
        if peer.replica == self._successor:
            self._order_campaign(peer)

    return replaced(Leader, _maybe_hand_over=hand_over)


@mutant
def trap_35_obeys_an_old_order_to_campaign() -> AbstractContextManager[None]:
    original = voting_module.answer_lower_term

    def answer(raft: Raft, message: Any) -> None:
        if isinstance(message, TimeoutNow):
            raft.start_election(is_transfer=True)
        else:
            original(raft, message)

    return replaced(voting_module, answer_lower_term=answer)


# --- progress: what only a group that never settles shows


@mutant
def trap_39_waits_for_a_snapshot_for_ever() -> AbstractContextManager[None]:
    def tick(self: Replication) -> None:
        for peer in self.peers:
            peer.tick(self.raft.now_ns)

    return replaced(Replication, tick=tick)


@mutant
def trap_40_a_compacted_probe_stalls() -> AbstractContextManager[None]:
    return replaced(Replication, _send_snapshot=lambda self, peer: setattr(peer, "paused", True))


@mutant
def trap_41_a_full_window_never_drains() -> AbstractContextManager[None]:
    def heartbeat_reply(self: Replication, peer: Progress, round_number: int) -> None:
        peer.round = max(peer.round, min(round_number, self.own.round))
        if peer.mode is not Mode.REPLICATE:
            peer.paused = False
            peer.nudged = peer.match < self.raft.log.last_index

    return replaced(Replication, heartbeat_reply=heartbeat_reply)


# --- the host, its disk and its machine


@mutant
def trap_36_snapshot_and_log_are_written_apart() -> AbstractContextManager[None]:
    original = Host._queue

    def queue(self: Host, write: Write) -> None:
        if write.installs is not None:
            self.disk.write_state(Write(None, [], {}, write.membership, write.installs))
        original(self, write)

    return replaced(Host, _queue=queue)


@mutant
def trap_43_state_without_its_marker() -> AbstractContextManager[None]:
    original = Disk.write_state

    def write_state(self: Disk, write: Write) -> None:
        if write.persist is None:  # a flush
            write.changes.pop(keys.APPLIED, None)
        original(self, write)

    return replaced(Disk, write_state=write_state)


@mutant
def trap_44_applies_by_its_own_clock() -> AbstractContextManager[None]:
    original = Host.apply_one

    def apply_one(self: Host, entry: Any) -> list[Any]:
        with _own_clock(self.clock.wall_ns()):
            return original(self, entry)

    return replaced(Host, apply_one=apply_one)


def _own_clock(wall_ns: int) -> AbstractContextManager[None]:
    from tests.simulation import host as host_module

    def with_own_clock(payload: bytes) -> Any:
        return wall_ns // (100 * MS) * (100 * MS), operations_of(payload)[1]

    return replaced(host_module, operations_of=with_own_clock)


@mutant
def trap_46_goes_on_after_a_failed_sync() -> AbstractContextManager[None]:
    def sync_failed(self: Host) -> None:
        self.finished.append(self.disk.pending.popleft())
        self.wake()

    return replaced(Host, sync_failed=sync_failed)


@mutant
def trap_47_uses_a_torn_write() -> AbstractContextManager[None]:
    original = Disk.recover

    def recover(self: Disk) -> None:
        torn = self.torn
        if torn is not None and torn.persist is not None:
            for entry in torn.persist.entries:  # what was to be removed is not, nor is the hard state there
                self.log[entry.index] = entry
                self.last_index = max(self.last_index, entry.index)
            self.state.write(dict(list(torn.changes.items())[: len(torn.changes) // 2]))
        original(self)

    return replaced(Disk, recover=recover)


@mutant
def trap_48_a_hole_in_the_state() -> AbstractContextManager[None]:
    original = Disk.crash

    def crash(self: Disk, dice: Any) -> int:
        newest = [write for write in self.pending if write.changes][-1:]
        lost = original(self, dice)
        for write in newest:  # the last batch survives, one before it does not
            changes = {key: value for key, value in write.changes.items() if key != keys.APPLIED}
            self.state.write(changes)
        return lost

    return replaced(Disk, crash=crash)


@mutant
def trap_50_a_repeated_request_makes_another_job() -> AbstractContextManager[None]:
    original = Clients.repeated

    def repeated(self: Clients, task: Any) -> Any:
        if not isinstance(task.ask, str | Fetch) and hasattr(task.ask, "jobs"):
            (new,) = task.ask.jobs
            return enqueue(msgspec.structs.replace(new, id=job_id(100_000 + task.number * 20 + task.tries)))
        return original(self, task)

    return replaced(Clients, repeated=repeated)


@mutant
def trap_50_a_repeated_fetch_claims_more() -> AbstractContextManager[None]:
    original = Fetch.apply

    def apply(self: Fetch, tables: Any) -> Any:
        return original(msgspec.structs.replace(self, is_repeated=False), tables)

    return replaced(Fetch, apply=apply)


# --- the hunt


def first_catch(name: str, seeds: range) -> tuple[int, str] | None:
    """The first of these seeds that fails under the mutant, and how."""
    with MUTANTS[name]():
        for seed in seeds:
            failure, _ = run_plan(make_plan(seed))
            if failure is not None:
                return seed, failure
    return None


def hunt(name: str, seeds_max: int) -> tuple[str, int, str]:
    caught = first_catch(name, range(seeds_max))
    return (name, -1, "not caught") if caught is None else (name, caught[0] + 1, caught[1])


def main() -> int:
    parser = argparse.ArgumentParser(description="Prove that the simulator bites.")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    names = asked.names or list(MUTANTS)
    survivors = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        hunts = [pool.submit(hunt, name, asked.seeds) for name in names]
        for finished in as_completed(hunts):
            name, needed, failure = finished.result()
            print(f"{needed if needed > 0 else 'survived':>8}  {name}  {failure[:90]}", flush=True)
            if needed < 0:
                survivors.append(name)
    print(f"{len(names) - len(survivors)} of {len(names)} mutants caught within {asked.seeds} seeds")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
