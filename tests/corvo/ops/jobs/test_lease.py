"""Who may speak for an active job."""

import pytest

from corvo.model.lifecycle import State
from corvo.ops.jobs.lease import holds, lost
from tests.support.builders import a_job, job_id
from tests.support.machine import Machine


@pytest.mark.parametrize("token", [0, 4])
def test_the_newest_token_or_none_speaks_for_an_active_job(token: int) -> None:
    assert holds(a_job(state=State.ACTIVE, lease_token=4), token)


@pytest.mark.parametrize("token", [3, 5])
def test_another_token_does_not(token: int) -> None:
    assert not holds(a_job(state=State.ACTIVE, lease_token=4), token)


@pytest.mark.parametrize("state", sorted(set(State) - {State.ACTIVE}))
@pytest.mark.parametrize("token", [0, 4])
def test_nobody_speaks_for_a_job_that_is_not_active(state: State, token: int) -> None:
    assert not holds(a_job(state=state, lease_token=4), token)


@pytest.mark.parametrize(
    ("job", "token", "code", "words"),
    [
        # in order of precedence
        (None, 0, "JOB_NOT_FOUND", ()),
        (None, 4, "JOB_NOT_FOUND", ()),
        (a_job(state=State.ACTIVE, lease_token=4), 3, "LEASE_LOST", ("lease 3", "is active", "newest lease 4")),
        (a_job(state=State.COMPLETED, lease_token=4), 4, "LEASE_LOST", ("is completed",)),
        (a_job(state=State.PENDING), 0, "WRONG_STATE", ("is pending, not active",)),
    ],
)
def test_the_refusal_says_why(job, token: int, code: str, words: tuple[str, ...]) -> None:
    refused = lost(Machine().tables, job, job_id(1), token)

    assert refused.code == code
    assert all(word in refused.message for word in (job_id(1), *words))
