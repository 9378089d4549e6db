"""Raft for one group: an algorithm without threads, sockets, files, clocks or dice.

How to read it. `messages.py` has the words; `log.py`, `quorum.py`, `membership.py` and `progress.py` stand alone and
may be read in any order; `ready.py` says what is asked of the host. Then `core.py`, from `step`, `tick` and `ready`
into the roles `follower.py`, `candidate.py`, `leader.py`; `voting.py` decides about votes, `replication.py` and
`reads.py` are the leader's two jobs. "Paper" is Ongaro and Ousterhout 2014 (extended), "thesis" is Ongaro 2014.

The host's duties, in the order of a turn:

1.  At start, increase the stored incarnation and sync it before the first message leaves. Build `Raft` from what
    the disk holds: `Restored.membership` is the one in force at `Restored.applied`.
2.  Report finished writes (`persisted`), step the messages that came (`step`, with the time), *then* let timers
    fire (`tick`): a process that was stopped must find its queued heartbeats, and its disk's answers, before it
    concludes that leader or disk are dead. Then make requests (`propose`, `read_index`, ...).
3.  Take `ready()` until it is None. It may be called at any time, and costs little when there is nothing.
4.  Send `send_now` at once. Losing, repeating, delaying or reordering messages is allowed; altering them is not.
    `report_unreachable(peer)` when a transport knows that it lost some.
5.  Hand `persist` to the disk: one atomic, synced write in the order of its fields. Several may be under way; they
    complete in order. A failed write ends the process: never retry it, never continue without it.
6.  When it is durable: send that Ready's `send_after`, call `persisted(token)`, take `ready()` again.
7.  Apply `apply` in order, then call `applied(index)`, with the machine's state hash if it has one. Entries of kind
    NOOP and MEMBERSHIP are handed out too: they have an index, but nothing for the machine to do.
8.  Whenever the applied index is written to disk, `membership` is written with it, in the same atomic write, and
    never before the entries themselves.
9.  Serve `reads` from the machine as it is now. Serve `lease_reads` within the same turn and look at the clock
    *afterwards*: if it is past `until_ns`, ask again. Ask again too for `reads_refused`.
10. An `InstallSnapshot` in `send_now` asks for a stream: fill in index, term and membership of the state that is
    really sent, stream it, then `report_snapshot(peer, ok)`. The receiving host steps the message when the stream is
    complete and verified; `Persist.snapshot` then says whether to install it, and without it, it is thrown away.
11. Compact when convenient: call `compacted(first_index)` with at most `compactable_index() + 1`, then delete.
12. Sleep until a message, a request, a finished write, or `deadline_ns()`.
13. `diverged` and `is_rolled_back` are reasons to stop the replica and call a human.

One thread calls the core. An AssertionError means that an invariant is broken: end the process.
"""

from shards.raft.core import Raft
from shards.raft.log import LogReader, Restored
from shards.raft.membership import (
    ChangeKind,
    Membership,
    MembershipChange,
    MembershipStep,
    add_learner,
    promote,
    remove,
)
from shards.raft.messages import (
    AnyMessage,
    EntryKind,
    HardState,
    InstallSnapshot,
    LogEntry,
    PreVote,
    ReadRequest,
    Vote,
    decode,
    encode,
)
from shards.raft.options import Options
from shards.raft.progress import PeerStatus
from shards.raft.ready import Divergence, LeaseRead, Persist, Ready, Role, RoleChange, SnapshotMarker
from shards.raft.refusals import (
    MembershipRefused,
    NotLeader,
    RaftRefusal,
    TooMuchUncommitted,
    TransferRefused,
    Transferring,
)

__all__ = [
    "AnyMessage",
    "ChangeKind",
    "Divergence",
    "EntryKind",
    "HardState",
    "InstallSnapshot",
    "LeaseRead",
    "LogEntry",
    "LogReader",
    "Membership",
    "MembershipChange",
    "MembershipRefused",
    "MembershipStep",
    "NotLeader",
    "Options",
    "PeerStatus",
    "Persist",
    "PreVote",
    "Raft",
    "RaftRefusal",
    "ReadRequest",
    "Ready",
    "Restored",
    "Role",
    "RoleChange",
    "SnapshotMarker",
    "TooMuchUncommitted",
    "TransferRefused",
    "Transferring",
    "Vote",
    "add_learner",
    "decode",
    "encode",
    "promote",
    "remove",
]
