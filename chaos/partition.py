"""Partition the nodes of a cluster under load, in a random way each round, then check that every promise was kept.

    python -m chaos.partition                        five rounds on its own three nodes
    python -m chaos.partition --rounds 20 --seed 7

The leader of a shard is cut off from the others in both directions, or in one, or from only one of them. Clients still
reach it, and it must refuse what it cannot commit. The others serve.
Exit code 0: every promise kept. 1: violations, listed.
"""

import sys
import time

from chaos.trial import Trial, main

CUT_S = 5.0
WAYS = ("cut off", "mute", "deaf", "without one")


def part_a_leader(trial: Trial) -> str:
    cluster, dice = trial.cluster, trial.dice
    shard, way = dice.randrange(cluster.shards), dice.choice(WAYS)
    node = cluster.leader_of(shard)
    if way == "without one":
        cluster.part(node, dice.choice([other for other in cluster.nodes if other is not node]))
    else:
        cluster.cut_off(node, hears=way == "mute", speaks=way == "deaf")
    cut_at = time.monotonic()
    flow_s = trial.await_flow()
    time.sleep(max(0.0, cut_at + CUT_S - time.monotonic()))  # the duration of the fault
    cluster.heal()
    caught_up_s = cluster.await_caught_up()
    return (
        f"{node} (leader of shard {shard}) was {way} for {CUT_S:g} s, every shard completed jobs {flow_s:.1f} s later,"
        f" caught up {caught_up_s:.1f} s after healing"
    )


if __name__ == "__main__":
    sys.exit(main(__doc__, part_a_leader, rounds=5, proxied=True))
