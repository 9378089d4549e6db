"""Every trap of reference/raft.md section 3 has a test that bears its number, and no test names a trap that is none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TRAPS = {
    1: "replicas of entries of earlier terms counted for commitment",
    2: "term or vote not on disk before the answer",
    3: "terms begin anew when the whole group restarts",
    4: "append acknowledged before it is synced",
    5: "votes asked for before the own log is durable",
    6: "messages for a former life believed",
    7: "log cut although the entries match",
    8: "commit index beyond what an append has verified",
    9: "commit index of a heartbeat above the match",
    10: "commit index goes back",
    11: "match index goes back",
    12: "answers of another term believed",
    13: "one voter counted twice, or a pre-vote as a vote",
    14: "vote not repeated to the same candidate",
    15: "leader votes for another in its own term",
    16: "two leaders in one term",
    17: "rejoining replica deposes the leader",
    18: "partial connectivity, elections without end",
    19: "pre-vote and quorum check block each other",
    20: "pre-candidate clings to the old leader",
    21: "read before the leader has committed in its term",
    22: "read confirmed by an earlier round",
    23: "read before the machine has come to its index",
    24: "lease counted from the answer, or not checked after the read",
    25: "lease survives a transfer",
    26: "restarted follower forgets its promise",
    27: "members changed before a commit in the term",
    28: "campaign over members not applied",
    29: "second change of members, or joint phase left twice",
    30: "promoted learner refuses to vote",
    31: "removed replica campaigns, removed leader leads",
    32: "voter without data",
    33: "id used again after the loss of data",
    34: "transfer to one that cannot take over",
    35: "order to campaign of another term",
    36: "snapshot and log written apart",
    37: "older snapshot accepted",
    38: "matching suffix discarded by a snapshot",
    39: "waiting for a snapshot for ever",
    40: "compaction past a slow follower",
    41: "window full of lost messages",
    42: "late completion marks overwritten entries stable",
    43: "applied index apart from its state",
    44: "machine is not deterministic",
    45: "poisonous entry",
    46: "failed sync repeated as if nothing were lost",
    47: "torn or damaged entry used or skipped",
    48: "hole at a rotation of LevelDB's log",
    49: "half a batch written",
    50: "repeated request takes effect twice",
    51: "large entry delays heartbeats",
    52: "slow disk of a leader that goes on",
    53: "sleeping group never wakes",
    54: "starved loop finds its timers first",
    55: "time counted in calls",
}
_NAMED = re.compile(r"test_trap_(\d\d)_\w+")


def named_by_trap() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and (named := _NAMED.fullmatch(node.name)):
                found.setdefault(int(named[1]), []).append(f"{path.name}::{node.name}")
    return found


def test_every_trap_has_a_test_and_every_number_is_a_trap() -> None:
    found = named_by_trap()

    assert [f"{number}: {TRAPS[number]}" for number in sorted(set(TRAPS) - set(found))] == []
    assert [found[number] for number in sorted(set(found) - set(TRAPS))] == []
    assert sorted(TRAPS) == list(range(1, 56))
