"""Random faults from a seed: loss, repetition, reordering, partition, crash with loss of unsynced writes, slow disks
and machines, compaction, transfers, membership changes. Safety is checked after every event, liveness after healing.

One failing seed, or many seeds: RAFT_SEED=1234 RAFT_SEEDS=1 python -m pytest <this file>.
"""

from __future__ import annotations

import os
import random

import pytest
from raft_cluster import MS, Cluster, T

from shards.raft import MembershipChange, MembershipStep, Options, RaftRefusal
from shards.raft.membership import ChangeKind

SEEDS = int(os.environ.get("RAFT_SEEDS", "40"))
FIRST = int(os.environ.get("RAFT_SEED", "0"))


class Storm:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.options = Options(
            append_bytes_max=200,
            inflight_messages_max=4,
            inflight_bytes_max=600,
            tail_bytes_max=400,
            apply_bytes_max=300,
            snapshot_timeout_ns=3 * T,
            lease_reads=self.random.random() < 0.5,
        )
        self.cluster = Cluster("abcde"[: self.random.choice([1, 2, 3, 3, 5])], self.options, seed, settle_in=False)
        self.acknowledged: list[bytes] = []
        self.proposed: dict[tuple[int, int], bytes] = {}
        self.reads: dict[int, tuple[str, int]] = {}
        self.reads_served = 0
        self.count = 0

    def names_up(self) -> list[str]:
        return [name for name, host in self.cluster.hosts.items() if host.is_up]

    def run(self, events: int) -> None:
        acts = [
            (self.deliver, 60),
            (self.pass_time, 25),
            (self.propose, 20),
            (self.sync, 15),
            (self.apply, 10),
            (self.read, 6),
            (self.lose, 4),
            (self.repeat, 4),
            (self.stall, 3),
            (self.crash, 1),
            (self.restart, 3),
            (self.cut, 1),
            (self.heal, 1),
            (self.compact, 2),
            (self.transfer, 1),
            (self.change_members, 2),
            (self.report, 1),
        ]
        for act in self.random.choices([act for act, _ in acts], [weight for _, weight in acts], k=events):
            act()
            self.observe()

    def observe(self) -> None:
        self.cluster.check()
        for name, host in self.cluster.hosts.items():
            if not host.is_up:
                continue
            for context, index in host.reads:
                assert isinstance(context, int)
                asker, least = self.reads.pop(context)
                assert asker == name and index >= least, "a read is older than what was committed when it began"
                assert host.state.applied >= index, "a read came before the machine had reached its index"
                self.reads_served += 1
            host.reads.clear()
            for ready in host.readies:
                assert not ready.diverged and not ready.is_rolled_back
                for lease in ready.lease_reads:
                    assert isinstance(lease.context, int)
                    _, least = self.reads.pop(lease.context)
                    assert self.cluster.now_ns >= lease.until_ns or lease.index >= least, "a lease read is stale"
                    self.reads_served += 1
            host.readies.clear()

    # --- events

    def deliver(self) -> None:
        queue = self.cluster.queue
        for _ in range(self.random.randint(1, 6)):
            if queue:
                queue.rotate(-self.random.choice([0, 0, 0, 0, 1, 2, 5]))
                self.cluster.deliver(queue.popleft())

    def pass_time(self) -> None:
        span = self.random.choice([1, 10, 50, 100, 100, 100, 400]) * MS
        slow = self.random.choice([None, None, None, self.random.choice(list(self.cluster.hosts))])
        self.cluster.tick(span, *[name for name in self.cluster.hosts if name != slow])

    def propose(self) -> None:
        leader = self.cluster.leader()
        if leader is None:
            return
        self.count += 1
        payload = b"%d:" % self.count + b"x" * self.random.choice([1, 50, 150])
        try:
            (position,) = self.cluster.propose(leader.id, payload)
        except RaftRefusal:
            return
        self.proposed[position] = payload

    def read(self) -> None:
        name = self.random.choice(self.names_up() or ["a"])
        host = self.cluster.hosts[name]
        if not host.is_up:
            return
        self.count += 1
        least = max(self.cluster.committed, default=0)
        try:
            host.raft.read_index(self.count)
        except RaftRefusal:
            return
        self.reads[self.count] = (name, least)
        host.turn()

    def sync(self) -> None:
        for name in self.names_up():
            host = self.cluster.hosts[name]
            if host.writes and self.random.random() < 0.7:
                host.sync(self.random.randint(1, len(host.writes)))
                host.turn()

    def apply(self) -> None:
        for name in self.names_up():
            host = self.cluster.hosts[name]
            host.apply()
            host.turn()

    def lose(self) -> None:
        for _ in range(min(len(self.cluster.queue), self.random.randint(1, 5))):
            self.cluster.queue.popleft()

    def repeat(self) -> None:
        if self.cluster.sent:
            self.cluster.queue.append(self.random.choice(self.cluster.sent[-200:]))

    def stall(self) -> None:
        host = self.cluster.hosts[self.random.choice(list(self.cluster.hosts))]
        host.holds_disk = self.random.random() < 0.6
        host.holds_apply = self.random.random() < 0.3

    def crash(self) -> None:
        name = self.random.choice(list(self.cluster.hosts))
        if self.cluster.hosts[name].is_up:
            self.cluster.crash(name)

    def restart(self) -> None:
        down = [name for name, host in self.cluster.hosts.items() if not host.is_up]
        if down:
            self.cluster.restart(self.random.choice(down))

    def cut(self) -> None:
        one, other = self.random.choices(list(self.cluster.hosts), k=2)
        if one == other:
            self.cluster.isolate(one)
        elif self.random.random() < 0.5:
            self.cluster.cuts.add((one, other))
        else:
            self.cluster.cut(one, other)

    def heal(self) -> None:
        self.cluster.heal()

    def compact(self) -> None:
        name = self.random.choice(self.names_up() or ["a"])
        host = self.cluster.hosts[name]
        first = min(host.disk.state.applied, host.raft.log.applied) + 1
        if host.is_up and not host.writes and first > host.raft.log.first_index:
            host.raft.compacted(first)
            host.disk.compact(first)

    def transfer(self) -> None:
        leader = self.cluster.leader()
        if leader is not None:
            try:
                leader.transfer(self.random.choice(list(self.cluster.hosts)))
            except RaftRefusal:
                return
            self.cluster.hosts[leader.id].turn()

    def change_members(self) -> None:
        leader = self.cluster.leader()
        if leader is None:
            return
        replica = self.random.choice("abcdefg")
        kind = self.random.choice([ChangeKind.ADD_LEARNER, ChangeKind.PROMOTE, ChangeKind.PROMOTE, ChangeKind.REMOVE])
        if kind is ChangeKind.REMOVE and len(leader.membership.voters) <= 2:
            return
        if kind is ChangeKind.ADD_LEARNER and replica in leader.membership.voters:
            return
        if kind is ChangeKind.ADD_LEARNER and replica in self.cluster.hosts:
            return  # an id is never used twice
        try:
            leader.propose_membership(MembershipChange((MembershipStep(kind, replica),)), leader.membership.config_id)
        except RaftRefusal:
            return
        if replica not in self.cluster.hosts:
            self.cluster.join(replica)
        self.cluster.hosts[leader.id].turn()

    def report(self) -> None:
        leader = self.cluster.leader()
        if leader is not None:
            peer = self.random.choice(list(self.cluster.hosts))
            if self.random.random() < 0.5:
                leader.report_unreachable(peer)
            else:
                leader.report_snapshot(peer, self.random.random() < 0.5)

    # --- the end

    def calm(self) -> None:
        """Heal everything; the group must elect, commit, and agree."""
        cluster = self.cluster
        cluster.heal()
        for host in cluster.hosts.values():
            host.holds_disk = host.holds_apply = False
            if not host.is_up:
                cluster.restart(host.name)
            host.sync()
            host.apply()
            host.turn()
        cluster.run(12 * T, 100 * MS)
        leader = cluster.leader()
        assert leader is not None, "no leader after healing"
        cluster.propose(leader.id, b"last")
        cluster.run(4 * T, 100 * MS)
        leader = cluster.leader()
        assert leader is not None
        states = {}
        for name in leader.membership.members():
            states[name] = (cluster.hosts[name].state.applied, cluster.hosts[name].state.hash)
        assert len(set(states.values())) == 1, f"replicas disagree: {states}"
        assert cluster.payloads(leader.id)[-1] == b"last"
        for position, payload in self.proposed.items():
            known = cluster.committed.get(position[0])
            if known is not None and known[0] == position[1]:
                assert known[1] == payload


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_a_storm_breaks_no_promise_and_the_group_recovers(seed: int) -> None:
    storm = Storm(seed)

    storm.run(400)

    storm.calm()
