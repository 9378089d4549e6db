"""What goes wrong, and what operators do meanwhile: each line of a plan that is no call is a method here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from shards.raft import Membership, MembershipChange, MembershipStep, RaftRefusal
from shards.raft.membership import ChangeKind
from tests.simulation.clock import MS, T
from tests.simulation.host import Host
from tests.simulation.plan import Line

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

NAMES = "abcdefghijk"
MEMBERS_MAX = 7


class Faults:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._at_election: list[Line] = []
        self._is_healed = False

    def do(self, line: Line) -> None:
        getattr(self, f"do_{line.what}")(line)

    def _host(self, line: Line) -> Host:
        hosts = list(self._cluster.hosts.values())
        return hosts[line.who % len(hosts)]

    # --- crashes, cuts, slowness

    def do_crash(self, line: Line) -> None:
        self.crash(self._host(line), line.span_ns)

    def do_crash_leader(self, line: Line) -> None:
        if (leader := self._cluster.leader()) is not None:
            self.crash(leader, line.span_ns)

    def do_power_cut(self, line: Line) -> None:
        self._cluster.coverage["power cuts"] += 1
        for number, host in enumerate(list(self._cluster.hosts.values())):
            self.crash(host, line.span_ns * (1 + (line.who + number) % 3) // 3)

    def crash(self, host: Host, span_ns: int) -> None:
        if host.is_up:
            host.crash()
            self._cluster.events.after(span_ns, self.restart, host)

    def restart(self, host: Host) -> None:
        if not host.is_up:
            self._cluster.say(f"{host.name} restarts")
            host.start()

    def do_isolate(self, line: Line) -> None:
        self._isolate(self._host(line), line.span_ns)

    def do_isolate_leader(self, line: Line) -> None:
        if (leader := self._cluster.leader()) is not None:
            self._isolate(leader, line.span_ns)

    def _isolate(self, host: Host, span_ns: int) -> None:
        """From the other hosts; clients still reach it, and may be told old things."""
        pairs = [(host.name, other) for other in self._cluster.hosts if other != host.name]
        self._cut([*pairs, *((other, one) for one, other in pairs)], span_ns)

    def do_cut_one_way(self, line: Line) -> None:
        names = list(self._cluster.hosts)
        one, other = names[line.who % len(names)], names[line.who // 7 % len(names)]
        if one == other:
            self._cut([(one, name) for name in names if name != one], line.span_ns)
        else:
            self._cut([(one, other)], line.span_ns)

    def _cut(self, pairs: list[tuple[str, str]], span_ns: int) -> None:
        if self._is_healed:
            return  # of a fault that began before
        self._cluster.coverage["partitions"] += 1
        self._cluster.say(f"cut: {', '.join(f'{one}→{other}' for one, other in pairs)}")
        self._cluster.network.cuts.update(pairs)
        self._cluster.events.after(span_ns, self._cluster.network.cuts.difference_update, pairs)

    def do_pause(self, line: Line) -> None:
        host = self._host(line)
        if host.is_up and not host.is_paused:
            self._cluster.say(f"{host.name} pauses")
            host.pause(line.span_ns)

    def do_slow_disk(self, line: Line) -> None:
        host = self._host(line)
        host.disk_delay_ns = line.span_ns
        self._cluster.say(f"{host.name}'s disk is slow")
        self._cluster.events.after(2 * T, setattr, host, "disk_delay_ns", self._cluster.plan.disk_ns)

    def do_slow_apply(self, line: Line) -> None:
        host = self._host(line)
        host.apply_delay_ns = line.span_ns
        self._cluster.say(f"{host.name} applies slowly")
        self._cluster.events.after(3 * T, setattr, host, "apply_delay_ns", 0)

    def do_fail_sync(self, line: Line) -> None:
        host = self._host(line)
        host.next_sync_fails = True
        self._cluster.events.after(line.span_ns, self.restart, host)

    def do_crash_at_install(self, line: Line) -> None:
        for host in self._cluster.hosts.values():
            host.crashes_at, host.down_ns = "install", line.span_ns

    def do_crash_at_write(self, line: Line) -> None:
        host = self._host(line)
        host.crashes_at, host.down_ns = "write", line.span_ns

    def do_jump_wall(self, line: Line) -> None:
        self._host(line).clock.wall_skew_ns += line.span_ns - 5 * T
        self._cluster.coverage["clock jumps"] += 1

    def do_stop_at_lease(self, line: Line) -> None:
        if (leader := self._cluster.leader()) is not None:
            leader.stops_at_lease_ns = line.span_ns

    def do_stop_in_turn(self, line: Line) -> None:
        if (leader := self._cluster.leader()) is not None:
            leader.stops_in_turn_ns = line.span_ns

    def do_choke(self, line: Line) -> None:
        """Answers reach the leader later and later; when it is not heard any more, old ones are still on their way."""
        leader = self._cluster.leader()
        if leader is None:
            return
        network, events = self._cluster.network, self._cluster.events
        others = [name for name in self._cluster.hosts if name != leader.name]
        self._cluster.say(f"answers to {leader.name} are late")
        for other in others:
            network.chokes.setdefault((other, leader.name), events.now_ns)
            events.after(line.span_ns + 3 * T, network.chokes.pop, (other, leader.name), None)
        events.after(line.span_ns, self._cut, [(leader.name, other) for other in others], 3 * T)

    def do_late_appends(self, line: Line) -> None:
        """A follower seems dead, and gets a snapshot together with the entries that were on their way to it."""
        leader, follower = self._cluster.leader(), self._host(line)
        if leader is None or leader is follower:
            return
        network, way = self._cluster.network, (leader.name, follower.name)
        network.held.setdefault(way, [])
        self._cut([(follower.name, leader.name)], line.span_ns)
        self._cluster.events.after(line.span_ns + T, network.release, way)
        if self._cluster.plan.is_about_snapshots:  # what is sent is older than the end of the log
            leader.apply_delay_ns = line.span_ns // 2
            self._cluster.events.after(line.span_ns + T, setattr, leader, "apply_delay_ns", 0)

    def do_transfer(self, line: Line) -> None:
        leader = self._cluster.leader()
        if leader is None or leader.is_paused:
            return
        target = self._host(line).name
        try:
            leader.raft.transfer(target)
        except RaftRefusal:
            return
        self._cluster.say(f"{leader.name} is asked to hand over to {target}")
        self._cluster.coverage["transfers"] += 1
        leader.wake()

    # --- members

    def do_add_learner(self, line: Line) -> None:
        if len(self._cluster.hosts) < MEMBERS_MAX:
            name = NAMES[len(self._cluster.hosts)]  # never one that was used before
            self._change(ChangeKind.ADD_LEARNER, name)

    def do_promote(self, line: Line) -> None:
        leader = self._cluster.leader()
        if leader is not None and (learners := leader.raft.membership.learners):
            self._change(ChangeKind.PROMOTE, learners[line.who % len(learners)])

    def do_remove(self, line: Line) -> None:
        leader = self._cluster.leader()
        if leader is not None and len(leader.raft.membership.voters) > 2:
            members = leader.raft.membership.members()
            self._change(ChangeKind.REMOVE, members[line.who % len(members)])

    def do_demote(self, line: Line) -> None:
        leader = self._cluster.leader()
        if leader is not None and len(leader.raft.membership.voters) > 2:
            voters = leader.raft.membership.voters
            self._change(ChangeKind.ADD_LEARNER, voters[line.who % len(voters)])

    def _change(self, kind: ChangeKind, replica: str) -> None:
        leader = self._cluster.leader()
        if leader is None or leader.is_paused:
            return
        change = MembershipChange((MembershipStep(kind, replica),))
        try:
            leader.raft.propose_membership(change, leader.raft.membership.config_id)
        except RaftRefusal:
            return
        self._cluster.say(f"{leader.name} begins to {kind.name.lower()} {replica}")
        if replica not in self._cluster.hosts:
            self._cluster.add(replica, Membership())
        self._cluster.checks.change_accepted(leader, change)
        self._cluster.checks.observe(leader)
        leader.wake()

    def do_rush_in(self, line: Line) -> None:
        """An operator with no patience: the newcomer shall vote at once."""
        self.do_add_learner(line)
        for number in range(10):
            self._cluster.events.after(line.span_ns * number // 10, self.do_promote, line)

    def do_change_at_election(self, line: Line) -> None:
        self._at_election.append(line)

    def elected(self, host: Host) -> None:
        """What waited for a new leader reaches it before it has committed anything."""
        waiting, self._at_election = self._at_election, []
        for line in waiting:
            what = ("add_learner", "remove", "promote")[line.who % 3]
            self._cluster.events.after(line.span_ns % (20 * MS), self.do, msgspec.structs.replace(line, what=what))

    def heal(self) -> None:
        """Nothing goes wrong any more; who is down or stopped comes back."""
        self._is_healed = True
        self._cluster.network.heal()
        self._at_election.clear()
        for host in self._cluster.hosts.values():
            host.heal()
            self.restart(host)
            if host.is_paused:
                host.is_paused = False
                host.wake()
