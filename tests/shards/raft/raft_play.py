"""Plain-text plays: commands, `----`, and the transcript that they must give.

A block is some command lines, a line `----`, and the expected lines up to the next empty line. `#` begins a comment
for the reader. Commands (times in ms; `a b` are replicas):

    replicas a b c [option=value] [log.a=1,1,2] [term.a=7] [fresh]   begin; `fresh`: do not skip the silent start
    campaign a · propose a one two · read a r1 · transfer a b
    join d · add-learner a d · promote a d · remove a d · demote a d          a is the leader asked
    deliver [to=b] [from=a] [kind=Append] [count=1] · drop (same) · settle    `settle` delivers all that follows too
    tick 100 [a b] · run 1000                                                `run` ticks and settles, without transcript
    cut a b · isolate a · heal · crash a · restart a
    hold-disk a · sync a [1] · hold-apply a · apply a
    compact a 5 · unreachable a b · snapshot-report a b ok|failed
    status · progress a · log a · quietly <command>
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from raft_cluster import MS, Cluster

from shards.raft import (
    AnyMessage,
    EntryKind,
    LogEntry,
    Membership,
    MembershipChange,
    MembershipStep,
    Options,
    RaftRefusal,
    Ready,
)
from shards.raft.membership import ChangeKind
from shards.raft.messages import (
    Append,
    AppendReply,
    HeartbeatReply,
    InstallSnapshot,
    LeaderHeartbeat,
    PreVote,
    ReadReply,
    ReadRequest,
    Vote,
)

CHANGES = {
    "add-learner": ChangeKind.ADD_LEARNER,
    "demote": ChangeKind.ADD_LEARNER,
    "promote": ChangeKind.PROMOTE,
    "remove": ChangeKind.REMOVE,
}


def play(text: str) -> str:
    """Run every block and return the text with the transcript that it gave."""
    stage = Stage()
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        if "----" not in lines:
            blocks.append(block)
            continue
        commands = lines[: lines.index("----")]
        stage.lines = []
        for line in commands:
            if line and not line.startswith("#"):
                stage.command(line)
        blocks.append("\n".join([*commands, "----", *(stage.lines or ["ok"])]))
    return "\n\n".join(blocks) + "\n"


class Stage:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_quiet = False
        self.cluster: Cluster

    def say(self, line: str) -> None:
        if not self.is_quiet:
            self.lines.append(line)

    def command(self, line: str) -> None:
        words = line.split()
        if words[0] == "quietly":
            self.is_quiet = True
            words = words[1:]
        try:
            self.dispatch(words[0], words[1:])
        except RaftRefusal as refused:
            self.say(f"refused: {refused}")
        self.is_quiet = False

    def dispatch(self, verb: str, words: list[str]) -> None:
        if verb in CHANGES:
            self.change(verb, *words)
            return
        act: Callable[..., None] = getattr(self, "do_" + verb.replace("-", "_"))
        act(*words)

    # --- beginnings and endings

    def do_replicas(self, *words: str) -> None:
        names = [word for word in words if "=" not in word and word != "fresh"]
        settings = dict(word.split("=") for word in words if "=" in word)
        logs = {key[4:]: [int(t) for t in value.split(",")] for key, value in settings.items() if key[:4] == "log."}
        terms = {key[5:]: int(value) for key, value in settings.items() if key[:5] == "term."}
        options = {key: int(value) for key, value in settings.items() if "." not in key}
        if "lease_reads" in options:
            options["lease_reads"] = bool(options["lease_reads"])
        self.cluster = Cluster(
            names, msgspec.structs.replace(Options(), **options), 1, "fresh" not in words, logs, terms
        )
        self.cluster.on_ready = self.show_ready
        self.cluster.on_deliver = self.show_message

    def do_join(self, name: str) -> None:
        self.cluster.join(name)
        self.cluster.hosts[name].turn()

    def do_crash(self, name: str) -> None:
        self.cluster.crash(name)

    def do_restart(self, name: str) -> None:
        host = self.cluster.hosts[name]
        host.holds_disk = host.holds_apply = False
        self.cluster.restart(name)
        host.turn()

    # --- requests

    def do_campaign(self, name: str) -> None:
        self.cluster[name].campaign()
        self.cluster.hosts[name].turn()

    def do_propose(self, name: str, *payloads: str) -> None:
        self.cluster.propose(name, *[payload.encode() for payload in payloads])

    def do_read(self, name: str, context: str) -> None:
        self.cluster[name].read_index(context)
        self.cluster.hosts[name].turn()

    def do_transfer(self, name: str, target: str) -> None:
        self.cluster[name].transfer(target)
        self.cluster.hosts[name].turn()

    def change(self, verb: str, name: str, replica: str) -> None:
        raft = self.cluster[name]
        raft.propose_membership(MembershipChange((MembershipStep(CHANGES[verb], replica),)), raft.membership.config_id)
        self.cluster.hosts[name].turn()

    # --- network and time

    def select(self, words: tuple[str, ...]) -> list[AnyMessage]:
        wanted = dict(word.split("=") for word in words)
        chosen = [
            message
            for message in self.cluster.queue
            if wanted.get("to", message.receiver) == message.receiver
            and wanted.get("from", message.sender) == message.sender
            and wanted.get("kind", type(message).__name__) == type(message).__name__
        ]
        return chosen[: int(wanted.get("count", len(chosen)))]

    def take_out(self, words: tuple[str, ...]) -> list[AnyMessage]:
        chosen = self.select(words)
        for message in chosen:
            self.cluster.queue.remove(message)
        return chosen

    def do_deliver(self, *words: str) -> None:
        for message in self.take_out(words):
            self.cluster.deliver(message)

    def do_drop(self, *words: str) -> None:
        for message in self.take_out(words):
            self.say(f"lost: {describe(message)}")

    def do_settle(self) -> None:
        self.cluster.settle()

    def do_tick(self, span_ms: str, *names: str) -> None:
        self.cluster.tick(int(span_ms) * MS, *names)

    def do_run(self, span_ms: str) -> None:
        was_quiet, self.is_quiet = self.is_quiet, True
        self.cluster.run(int(span_ms) * MS)
        self.is_quiet = was_quiet

    def do_cut(self, one: str, other: str) -> None:
        self.cluster.cut(one, other)

    def do_isolate(self, name: str) -> None:
        self.cluster.isolate(name)

    def do_heal(self) -> None:
        self.cluster.heal()

    # --- disk and machine

    def do_hold_disk(self, name: str) -> None:
        self.cluster.hosts[name].holds_disk = True

    def do_sync(self, name: str, count: str = "") -> None:
        host = self.cluster.hosts[name]
        host.sync(int(count) if count else None)
        if not count:
            host.holds_disk = False
        host.turn()

    def do_hold_apply(self, name: str) -> None:
        self.cluster.hosts[name].holds_apply = True

    def do_apply(self, name: str) -> None:
        host = self.cluster.hosts[name]
        host.holds_apply = False
        host.apply()
        host.turn()

    def do_compact(self, name: str, first_index: str) -> None:
        self.cluster.compact(name, int(first_index))

    def do_unreachable(self, name: str, peer: str) -> None:
        self.cluster[name].report_unreachable(peer)
        self.cluster.hosts[name].turn()

    def do_snapshot_report(self, name: str, peer: str, outcome: str) -> None:
        self.cluster[name].report_snapshot(peer, outcome == "ok")
        self.cluster.hosts[name].turn()

    # --- what the audience sees

    def do_status(self) -> None:
        for name, host in self.cluster.hosts.items():
            raft = host.raft
            state = (
                f"{raft.role.value} term={raft.term} leader={raft.leader_id or '-'}"
                f" commit={raft.commit_index} last={raft.last_index} applied={raft.applied_index}"
            )
            self.say(f"{name}: {state if host.is_up else 'down'}")

    def do_progress(self, name: str) -> None:
        for peer in self.cluster[name].progress():
            learner = " learner" if peer.is_learner else ""
            self.say(
                f"{peer.replica}: {peer.mode} match={peer.match} next={peer.next}"
                f" inflight={peer.inflight_messages}{learner}"
            )

    def do_log(self, name: str) -> None:
        self.say(f"{name}: " + " ".join(f"{index}/{term}" for index, term in self.cluster.hosts[name].log()))

    def show_message(self, message: AnyMessage, arrives: bool) -> None:
        self.say(describe(message) + ("" if arrives else "  (nobody there)"))

    def show_ready(self, name: str, ready: Ready) -> None:
        if ready.role is not None:
            role = ready.role
            self.say(f"  {name} is {role.role.value} term={role.term} leader={role.leader_id or '-'}")
        if ready.persist is not None and not ready.persist.is_empty:
            self.say(f"  {name} writes {describe_write(ready)}")
        for entry in ready.apply:
            self.say(f"  {name} applies {describe_entry(entry)}")
        for context, index in ready.reads:
            self.say(f"  {name} reads {context} at {index}")
        for lease in ready.lease_reads:
            self.say(f"  {name} reads {lease.context} at {lease.index} by lease")
        for context in ready.reads_refused:
            self.say(f"  {name} refuses read {context}")
        for divergence in ready.diverged:
            self.say(f"  {name} differs from {divergence.peer} at {divergence.index}")
        if ready.is_rolled_back:
            self.say(f"  {name} has lost its memory")


def describe(message: AnyMessage) -> str:
    text = f"{message.sender}→{message.receiver} {type(message).__name__} term={message.term}"
    if isinstance(message, Append):
        text += f" prev={message.prev_index}/{message.prev_term} commit={message.commit}"
        if message.entries:
            text += " entries=" + ",".join(f"{entry.index}/{entry.term}" for entry in message.entries)
    elif isinstance(message, AppendReply):
        text += f" index={message.index}"
        if message.rejected:
            text += f" rejected hint={message.hint_index}/{message.hint_term}"
    elif isinstance(message, LeaderHeartbeat):
        text += f" commit={message.commit} round={message.round}"
    elif isinstance(message, HeartbeatReply):
        text += f" round={message.round}"
    elif isinstance(message, Vote | PreVote):
        text += f" last={message.last_index}/{message.last_term}"
        if isinstance(message, Vote) and message.is_transfer:
            text += " transfer"
    elif isinstance(message, InstallSnapshot):
        text += f" at={message.index}/{message.index_term}"
    elif isinstance(message, ReadRequest | ReadReply):
        text += f" number={message.number}"
        if isinstance(message, ReadReply):
            text += " refused" if message.refused else f" index={message.index}"
    elif hasattr(message, "granted"):
        text += " granted" if message.granted else " refused"
    return text


def describe_entry(entry: LogEntry) -> str:
    if entry.kind == EntryKind.NOOP:
        return f"{entry.index} (empty)"
    if entry.kind == EntryKind.MEMBERSHIP:
        return f"{entry.index} {describe_members(msgspec.msgpack.decode(entry.payload, type=Membership))}"
    return f"{entry.index} {entry.payload.decode()}"


def describe_members(membership: Membership) -> str:
    text = "voters=" + ",".join(membership.voters)
    for name in ("outgoing", "learners", "learners_next"):
        if getattr(membership, name):
            text += f" {name}=" + ",".join(getattr(membership, name))
    return text


def describe_write(ready: Ready) -> str:
    persist = ready.persist
    assert persist is not None
    parts = []
    if persist.snapshot is not None:
        parts.append(f"snapshot at {persist.snapshot.index}/{persist.snapshot.term}")
    if persist.truncate_after is not None:
        parts.append(f"cut after {persist.truncate_after}")
    if persist.entries:
        parts.append("entries " + ",".join(f"{entry.index}/{entry.term}" for entry in persist.entries))
    if persist.hard_state is not None:
        hard = persist.hard_state
        parts.append(f"term={hard.term} vote={hard.vote or '-'} commit={hard.commit}")
    if persist.membership is not None:
        parts.append("members")
    return "; ".join(parts)
