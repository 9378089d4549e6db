"""Freeze the process that leads a shard for ten seconds under load, then check that every promise was kept.

    python -m chaos.freeze_leader                    three rounds on its own three nodes
    python -m chaos.freeze_leader --rounds 10 --seed 7

A process that is stopped and resumed (SIGSTOP, SIGCONT) still believes that it leads, as on a machine that was paused.
By then another replica leads, and the old leader must notice before it answers any request.
Exit code 0: every promise kept. 1: violations, listed.
"""

import sys
import time

from chaos.trial import Trial, main

FREEZE_S = 10.0


def freeze_a_leader(trial: Trial) -> str:
    cluster = trial.cluster
    shard = trial.dice.randrange(cluster.shards)
    node = cluster.leader_of(shard)
    others = [other for other in cluster.nodes if other is not node]
    node.freeze(shard)
    frozen_at = time.monotonic()
    flow_s = trial.await_flow()
    successor = cluster.leader_of(shard, others)
    time.sleep(max(0.0, frozen_at + FREEZE_S - time.monotonic()))  # the duration of the fault
    node.thaw(shard)
    caught_up_s = cluster.await_caught_up()
    return (
        f"froze {node} (leader of shard {shard}) for {FREEZE_S:g} s, {successor} led meanwhile, every shard completed"
        f" jobs {flow_s:.1f} s later, caught up {caught_up_s:.1f} s after the thaw"
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, freeze_a_leader, rounds=3))
