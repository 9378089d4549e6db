"""The simulator bites: each deliberate bug is caught, by a seed that holds without it.

The seeds are those that the full hunt found: python -m tests.simulation.mutants. A change of the core or of the
simulator moves what a seed means: then others are tried, which takes longer; run the hunt and write the numbers anew.
"""

from __future__ import annotations

import pytest

from shards.raft.leader import Leader
from tests.simulation import cluster as cluster_module
from tests.simulation.cluster import Cluster
from tests.simulation.mutants import MUTANTS, first_catch
from tests.simulation.mutation import replaced
from tests.simulation.run import run_seed
from tests.simulation.test_simulation import SEEDS

CAUGHT_BY: dict[str, int] = {
    "trap_01_commits_old_terms": 5,
    "trap_02_votes_before_the_disk": 0,
    "trap_03_forgets_its_term": 0,
    "trap_03_forgets_its_vote": 114,
    "trap_04_acknowledges_before_the_disk": 0,
    "trap_05_asks_for_votes_before_the_disk": 0,
    "trap_06_listens_to_former_lives": 0,
    "trap_13_counts_votes_without_names": 14,
    "trap_15_leader_votes_for_another": 1,
    "trap_16_half_is_a_majority": 0,
    "trap_16_votes_for_shorter_logs": 0,
    "trap_16_compares_length_before_term": 192,
    "trap_17_disturbs_a_living_leader": 11,
    "trap_19_leaves_lower_terms_unanswered": 55,
    "trap_07_truncates_what_matches": 13,
    "trap_08_commits_an_unverified_tail": 4,
    "trap_09_heartbeats_commit_beyond_the_match": 0,
    "trap_10_commit_index_goes_back": 2,
    "trap_11_match_goes_back": 0,
    "trap_37_accepts_an_old_snapshot": 27,
    "trap_42_old_writes_mark_new_entries_stable": 12,
    "trap_21_reads_before_its_own_commit": 0,
    "trap_22_an_earlier_round_confirms_a_read": 53,
    "trap_22_reads_without_a_quorum": 53,
    "trap_23_reads_before_it_has_applied": 1,
    "trap_24_lease_counted_from_the_answer": 53,
    "trap_24_lease_checked_before_the_read": 13,
    "trap_25_lease_survives_a_transfer": 143,
    "trap_26_votes_right_after_a_restart": 0,
    "trap_27_changes_members_before_its_own_commit": 0,
    "trap_28_campaigns_over_unapplied_members": 36,
    "trap_29_two_changes_at_once": 5,
    "trap_29_joint_phase_counts_one_majority": 131,
    "trap_31_a_removed_leader_leads_on": 20,
    "trap_32_promotes_a_newcomer_without_a_log": 13,
    "trap_34_hands_over_to_one_that_is_behind": 5,
    "trap_35_obeys_an_old_order_to_campaign": 12,
    "trap_39_waits_for_a_snapshot_for_ever": 5,
    "trap_40_a_compacted_probe_stalls": 0,
    "trap_41_a_full_window_never_drains": 20,
    "trap_36_snapshot_and_log_are_written_apart": 5,
    "trap_43_state_without_its_marker": 1,
    "trap_44_applies_by_its_own_clock": 0,
    "trap_46_goes_on_after_a_failed_sync": 2,
    "trap_47_uses_a_torn_write": 42,
    "trap_48_a_hole_in_the_state": 1,
    "trap_50_a_repeated_request_makes_another_job": 0,
    "trap_50_a_repeated_fetch_claims_more": 1,
    "trap_50_an_ack_counts_under_another_workers_lease": 4,
    "trap_50_a_repeated_ack_is_refused": 5,
    "trap_50_answers_for_an_entry_of_another_leader": 15,
}


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_a_mutant_is_caught(name: str) -> None:
    seed = CAUGHT_BY[name]

    caught = first_catch(name, range(seed, seed + 1)) or first_catch(name, range(SEEDS))

    assert caught is not None, f"write its seed anew: python -m tests.simulation.mutants {name}"


def test_the_seeds_hold_without_their_mutants() -> None:
    """The others are among those that `test_simulation.py` runs."""
    for seed in sorted(seed for seed in CAUGHT_BY.values() if seed >= SEEDS):
        assert run_seed(seed).failure is None, f"python -m tests.simulation.run --seed {seed}"


@pytest.mark.parametrize(
    "name",
    [
        "trap_50_an_ack_counts_under_another_workers_lease",
        "trap_50_a_repeated_ack_is_refused",
    ],
)
def test_the_search_through_histories_needs_no_witness(name: str) -> None:
    seed = CAUGHT_BY[name]

    with replaced(cluster_module, witness=lambda answers, log: []), replaced(Cluster, _compare_with_model=_believe):
        caught = first_catch(name, range(seed, seed + 1))

    assert caught is not None and "a history is linearizable" in caught[1]


def _believe(*_: object) -> None:
    pass


def test_no_mutant_is_left_out() -> None:
    assert set(MUTANTS) == set(CAUGHT_BY)
    assert len(MUTANTS) >= 50


def test_a_mutant_leaves_no_trace() -> None:
    before = Leader._maybe_commit

    with MUTANTS["trap_01_commits_old_terms"]():
        assert Leader._maybe_commit is not before

    assert Leader._maybe_commit is before


def test_what_is_replaced_comes_back_after_a_failure() -> None:
    before = Leader.begin

    with pytest.raises(ZeroDivisionError), replaced(Leader, begin=None):
        raise ZeroDivisionError

    assert Leader.begin is before
