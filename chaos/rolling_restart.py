"""Restart all nodes of a cluster under load, one after the other, then check that every promise was kept.

    python -m chaos.rolling_restart                  one round on its own three nodes
    python -m chaos.rolling_restart --rounds 5

Each node is stopped with SIGTERM and must end with exit code 0. Connections to it break, so clients retry a broken or
refused request on the next node, for one second. A request that still fails is a violation. The line before the verdict
has the number of retries.
Exit code 0: every promise kept. 1: violations, listed.
"""

import sys
import time

from chaos.trial import Trial, main

PATIENCE_S = 1.0


def restart_every_node(trial: Trial) -> str:
    cluster = trial.cluster
    took = []
    for node in cluster.nodes:
        began = time.monotonic()
        code = node.stop()
        assert code == 0, f"{node} ended with {code}; see {node.log_path}"
        stopped_s = time.monotonic() - began
        took.append(f"{node} stopped in {stopped_s:.1f} s, ready in {node.start():.1f} s")
        cluster.await_caught_up()
        trial.await_flow()
    return ", ".join(took)


if __name__ == "__main__":
    sys.exit(main(__doc__, restart_every_node, rounds=1, patience_s=PATIENCE_S))
