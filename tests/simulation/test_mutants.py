"""The simulator bites: each deliberate bug is caught, by a seed that holds without it.

The seeds are those that the full hunt found: python -m tests.simulation.mutants. After a change of the simulator that
moves what a seed means, run it again and write the numbers anew.
"""

from __future__ import annotations

import pytest

from shards.raft.leader import Leader
from tests.simulation.mutants import MUTANTS, first_catch, replaced
from tests.simulation.run import run_seed

CAUGHT_BY: dict[str, int] = {
    "trap_01_commits_old_terms": 4,
    "trap_02_votes_before_the_disk": 0,
    "trap_03_forgets_its_term": 0,
    "trap_03_forgets_its_vote": 46,
    "trap_04_acknowledges_before_the_disk": 0,
    "trap_05_asks_for_votes_before_the_disk": 0,
    "trap_06_listens_to_former_lives": 0,
    "trap_13_counts_votes_without_names": 29,
    "trap_15_leader_votes_for_another": 0,
    "trap_16_half_is_a_majority": 0,
    "trap_16_votes_for_shorter_logs": 2,
    "trap_16_compares_length_before_term": 223,
    "trap_17_disturbs_a_living_leader": 11,
    "trap_19_leaves_lower_terms_unanswered": 78,
    "trap_07_truncates_what_matches": 8,
    "trap_08_commits_an_unverified_tail": 14,
    "trap_09_heartbeats_commit_beyond_the_match": 0,
    "trap_10_commit_index_goes_back": 6,
    "trap_11_match_goes_back": 0,
    "trap_12_believes_answers_of_other_terms": 380,
    "trap_37_accepts_an_old_snapshot": 58,
    "trap_42_old_writes_mark_new_entries_stable": 37,
    "trap_21_reads_before_its_own_commit": 0,
    "trap_22_reads_without_a_quorum": 348,
    "trap_23_reads_before_it_has_applied": 2,
    "trap_24_lease_counted_from_the_answer": 596,
    "trap_25_lease_survives_a_transfer": 141,
    "trap_26_votes_right_after_a_restart": 0,
    "trap_27_changes_members_before_its_own_commit": 0,
    "trap_28_campaigns_over_unapplied_members": 109,
    "trap_29_two_changes_at_once": 1,
    "trap_29_joint_phase_counts_one_majority": 167,
    "trap_31_a_removed_leader_leads_on": 13,
    "trap_32_promotes_a_newcomer_without_a_log": 1,
    "trap_34_hands_over_to_one_that_is_behind": 23,
    "trap_35_obeys_an_old_order_to_campaign": 23,
    "trap_39_waits_for_a_snapshot_for_ever": 77,
    "trap_40_a_compacted_probe_stalls": 0,
    "trap_41_a_full_window_never_drains": 15,
    "trap_36_snapshot_and_log_are_written_apart": 0,
    "trap_43_state_without_its_marker": 0,
    "trap_44_applies_by_its_own_clock": 0,
    "trap_46_goes_on_after_a_failed_sync": 0,
    "trap_47_uses_a_torn_write": 17,
    "trap_48_a_hole_in_the_state": 1,
    "trap_50_a_repeated_request_makes_another_job": 0,
    "trap_50_a_repeated_fetch_claims_more": 0,
}
# What no seed of the hunt caught yet, with the reason.
SURVIVORS: dict[str, str] = {
    "trap_38_snapshot_discards_a_matching_tail": "needs a snapshot within a log, above its commit index",
    "trap_22_an_earlier_round_confirms_a_read": "needs a late answer and a read after a new leader's commit",
    "trap_24_lease_checked_before_the_read": "harmless: a read that began within the lease may stand there",
}


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_a_mutant_is_caught(name: str) -> None:
    seed = CAUGHT_BY[name]

    assert first_catch(name, range(seed, seed + 1)) is not None, f"run: python -m tests.simulation.mutants {name}"


def test_the_seeds_hold_without_their_mutants() -> None:
    for seed in sorted(set(CAUGHT_BY.values())):
        assert run_seed(seed).failure is None, f"python -m tests.simulation.run --seed {seed}"


def test_no_mutant_is_left_out() -> None:
    assert set(MUTANTS) == set(CAUGHT_BY) | set(SURVIVORS)
    assert len(CAUGHT_BY) >= 30


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
