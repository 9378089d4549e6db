"""A cluster, its clients and its faults; run from a plan, checked after every step and at the end."""

from __future__ import annotations

import random
from collections import Counter

from corvo.model.job import decode_job, decode_queue
from corvo.model.lifecycle import State
from corvo.state import keys
from shards.raft import EntryKind, Membership, Options
from tests.simulation.admission import Request
from tests.simulation.checkers import Checkers, require
from tests.simulation.clock import EPOCH_NS, MS, Events, HostClock, T
from tests.simulation.disk import Disk
from tests.simulation.faults import NAMES, Faults
from tests.simulation.host import Host
from tests.simulation.linearizability import NEVER, Op, replay, wgl, witness
from tests.simulation.network import Network
from tests.simulation.plan import ASKS, Line, Plan
from tests.simulation.workload import Clients
from tests.support.model import ModelJob

CALM_NS = 40 * T  # a healed group that has not settled by then never will


class Cluster:
    def __init__(self, plan: Plan, is_traced: bool = False) -> None:
        self.plan = plan
        self.seed = plan.seed
        self.dice = random.Random(plan.seed + 1_000_003)
        self.events = Events()
        self.coverage: Counter[str] = Counter()
        self._trace: list[str] | None = [] if is_traced else None
        self.options = Options(
            heartbeat_ns=250 * MS,
            append_bytes_max=300,
            inflight_messages_max=4,
            inflight_bytes_max=800,
            tail_bytes_max=600,
            apply_bytes_max=500,
            snapshot_timeout_ns=plan.snapshot_timeout_ns,
            lease_reads=plan.lease_reads,
        )
        self.network = Network(self, self.events, self.dice, plan.weather)
        self.checks = Checkers(self)
        self.clients = Clients(self)
        self.faults = Faults(self)
        self.founders = Membership(0, tuple(NAMES[: plan.nodes]))
        self.hosts: dict[str, Host] = {}
        self._is_healed = False
        for name in self.founders.voters:
            self.add(name, self.founders)

    def add(self, name: str, membership: Membership) -> None:
        drift = self.plan.drift_ppm
        rate_ppm = self.dice.randint(-drift, drift)
        clock = HostClock(self.events, rate_ppm, self.dice.randint(-200, 200) * MS)
        self.hosts[name] = Host(self, name, Disk(membership), clock)

    def wall_ns(self) -> int:
        return EPOCH_NS + self.events.now_ns

    # --- the trace

    def say(self, text: str) -> None:
        if self._trace is not None:
            self._trace.append(f"{self.events.now_ns // MS:>6} ms  {text}")

    @property
    def trace(self) -> list[str]:
        return self._trace or []

    # --- running

    def run(self) -> None:
        """The storm, the calm after it, and the reckoning."""
        for line in self.plan.lines:
            self.events.at(line.at_ns, self._do, line)
        self._audit_old_leaders()
        end_ns = self.plan.lines[-1].at_ns if self.plan.lines else 2 * T
        self.events.run_until(end_ns + T)
        self.heal()
        self._settle()
        self.reckon()
        self.coverage["events"] += self.events.count

    def _do(self, line: Line) -> None:
        if line.what in ASKS:
            self.clients.do(line)
        else:
            self.faults.do(line)

    def leader(self) -> Host | None:
        """The leader of the latest term among those who live."""
        leaders = [host for host in self.hosts.values() if host.is_up and host.raft.is_leader]
        return max(leaders, key=lambda host: host.raft.term, default=None)

    def elected(self, host: Host) -> None:
        self._audit(host)
        self.faults.elected(host)

    # --- audits: reads that no client waits for, where they are most likely to be wrong

    def _audit_old_leaders(self) -> None:
        """Who still leads an old term is asked again and again."""
        leaders = [host for host in self.hosts.values() if host.is_up and host.raft.is_leader]
        latest = max(host.raft.term for host in self.hosts.values()) if leaders else 0
        for host in leaders:
            if host.raft.term < latest:
                self._audit(host)
        if not self._is_healed:
            self.events.after(30 * MS, self._audit_old_leaders)

    def _audit(self, host: Host) -> None:
        self.coverage["audits"] += 1
        host.request(Request("auditor", 0, self.clients.jobs[-1] if self.clients.jobs else "none"))

    # --- the calm

    def heal(self) -> None:
        self.say("all is healed")
        self._is_healed = True
        self.faults.heal()

    def _settle(self) -> None:
        until_ns = self.events.now_ns + CALM_NS
        while True:
            self.events.run_until(self.events.now_ns + T // 2)
            if not self.clients.is_busy and self._has_settled():
                return
            require(self.events.now_ns < until_ns, "a healed group elects, commits and agrees", self._standing())

    def _has_settled(self) -> bool:
        leader = self.leader()
        if leader is None or not leader.raft.log.commit == leader.raft.log.applied == leader.raft.log.last_index:
            return False
        if leader.raft.membership.is_joint or leader.raft.log.term(leader.raft.log.commit) != leader.raft.term:
            return False
        members = [self.hosts[name] for name in leader.raft.membership.members()]
        return all(host.tables.applied.index == leader.tables.applied.index for host in members)

    def _standing(self) -> str:
        hosts = self.hosts.values()
        return ", ".join(f"{h.name} {h.raft.role.value} term {h.raft.term} at {h.tables.applied.index}" for h in hosts)

    # --- the reckoning

    def reckon(self) -> None:
        """Replicas agree; every answer is borne out; nothing acknowledged is missing, nothing is there twice."""
        leader = self.leader()
        assert leader is not None
        self._compare_replicas(leader)
        committed = self.checks.committed
        require(sorted(committed) == list(range(1, self.checks.commit_index + 1)), "the committed log has no hole")
        entries = [committed[index].entry for index in sorted(committed)]
        log = replay([(entry.index, entry.payload) for entry in entries if entry.kind == EntryKind.NORMAL])
        faults = witness(self.clients.answers, log)
        require(not faults, "every answer is in the log", *faults)
        self._compare_with_model(leader, log.final.jobs)
        ops = self.clients.history()
        claimed = {(op.job, op.token) for op in ops if op.kind == "claim"}
        calls = {task.number: task.call for task in self.clients.tasks}
        for _, claim_id, job, token in log.claims:
            if (job, token) not in claimed:  # by a try whose answer was lost
                ops.append(Op("claim", job, calls[claim_id], NEVER, token, "ok"))
        for index, op in log.moves:
            op.call = self.checks.proposed_at[(index, committed[index].entry.term)]
            op.end = self.checks.first_applied_at[index]
            self.coverage[f"{op.kind}s"] += 1
            ops.append(op)
        broken = wgl(ops)
        require(not broken, "a history is linearizable", *(op for op in ops if op.job in broken[:1]))

    def _compare_replicas(self, leader: Host) -> None:
        leader._collect()
        content = leader.live.content()
        for name in leader.raft.membership.members():
            host = self.hosts[name]
            host._collect()
            require(host.live.content() == content, "replicas hold the same bytes", leader.name, name)

    def _compare_with_model(self, leader: Host, expected: dict[str, ModelJob]) -> None:
        live = leader.live
        jobs = [decode_job(raw) for _, raw in live.scan(keys.JOBS, keys.prefix_end(keys.JOBS))]
        queues = [decode_queue(raw) for _, raw in live.scan(keys.QUEUES, keys.prefix_end(keys.QUEUES))]
        found = {job.id: (job.state.name.lower(), job.lease_token) for job in jobs}
        require(found == {j: (m.state, m.token) for j, m in expected.items()}, "the state is the model's")
        requests = [job.payload.split(b":")[0] for job in jobs]
        require(len(set(requests)) == len(requests), "a request that is repeated makes one job")
        for job_id in self.clients.enqueued:
            require(job_id in found, "an acknowledged job is not lost", job_id)
        for job_id in self.clients.acked:
            require(found[job_id][0] == "completed", "an acknowledged completion is not lost", job_id)
        for queue in queues:
            count = sum(job.queue == queue.name and job.state == State.COMPLETED for job in jobs)
            require(queue.completed == count, "a job completes once", queue.name)
