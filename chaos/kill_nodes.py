"""Kill whole nodes of a cluster under load with SIGKILL, in rounds, then check that every promise was kept.

    python -m chaos.kill_nodes                       twenty rounds on its own three nodes
    python -m chaos.kill_nodes --rounds 100 --seed 7

Most rounds kill the leader of a shard, some a random node, and some all nodes at once, like a power cut. Killed nodes
are restarted, and the next round begins when they have caught up. Exit code 0: every promise kept. 1: violations,
listed.
"""

import sys

from chaos.cluster import ClusterNode
from chaos.trial import Trial, main

PATIENCE_S = 60.0  # after a power cut the whole cluster has to start
HARMS = ("leader", "leader", "leader", "any node", "any node", "all nodes")


def kill_nodes(trial: Trial) -> str:
    cluster = trial.cluster
    harm = trial.dice.choice(HARMS)
    victims = choose(trial, harm)
    for node in victims:
        node.kill()
    told = f"killed {', '.join(node.name for node in victims)} ({harm})"
    if cluster.running:
        told += f", every shard completed jobs {trial.await_flow():.1f} s later"
    for node in victims:
        node.launch()
    back_s = cluster.await_ready()
    return f"{told}, back in {back_s:.1f} s, caught up in {cluster.await_caught_up():.1f} s"


def choose(trial: Trial, harm: str) -> list[ClusterNode]:
    cluster, dice = trial.cluster, trial.dice
    if harm == "all nodes":
        return cluster.nodes
    return [cluster.leader_of(dice.randrange(cluster.shards)) if harm == "leader" else dice.choice(cluster.nodes)]


if __name__ == "__main__":
    sys.exit(main(__doc__, kill_nodes, rounds=20, patience_s=PATIENCE_S))
