"""Operations drawn from small pools, so that repeated ids, stale tokens and lost leases are common, not rare."""

import string

from hypothesis import strategies as st

from corvo.model.job import Priority
from corvo.model.retry import Backoff
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail, FailItem
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.jobs.heartbeat import Beat, Heartbeat
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.rules.job_creation import NewJob
from tests.support.builders import MS, NOW, SECOND, job_id

QUEUES = ("mail", "mail.slow", "video")

_ALNUM = string.ascii_letters + string.digits
# Written out instead of drawn from the patterns, which is slow; test_limits.py holds these to the patterns.
queue_names = st.builds(str.__add__, st.sampled_from(_ALNUM), st.text(_ALNUM + "._:/-", max_size=30))
worker_ids = st.builds(str.__add__, st.sampled_from(_ALNUM), st.text(_ALNUM + "._:/@+-", max_size=30))
job_ids = st.builds("s{:02d}_job_{:026x}".format, st.integers(0, 63), st.integers(0, 2**104 - 1))
u64 = st.integers(0, 2**64 - 1)
u32 = st.integers(0, 2**32 - 1)

_jobs = st.integers(1, 7).map(job_id)
_queues = st.sampled_from(QUEUES)
_tokens = st.sampled_from((0, 1, 1, 2, 3))
_asks = st.integers(1, 6)
_documents = st.sampled_from((b"", b'{"n":1}', b'{"n":2}'))

# A job of one id is always asked for alike: an id is minted for one request, and its repetition is the same bytes.
_new_jobs = {
    number: NewJob(
        id=job_id(number),
        queue=QUEUES[number % 3 if number < 6 else 0],
        payload=b"%d" % number,
        priority=Priority(number % 2 + 1 if number > 2 else 0),
        max_retries=(3, 1, 0, 2)[number % 4],
        backoff=Backoff(number % 4),
        base_delay_ms=700,
        max_delay_ms=1_000,
        scheduled_at=NOW + SECOND * number if number in (3, 5) else 0,
        checkpoint=b'{"born":1}' if number == 4 else b"",
    )
    for number in range(1, 8)
}
_new = st.sampled_from(sorted(_new_jobs)).map(_new_jobs.__getitem__)


def _some(one: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(one, min_size=1, max_size=3)


enqueues = st.builds(Enqueue, _some(_new))
fetches = st.builds(
    Fetch,
    queues=st.lists(_queues, min_size=1, max_size=3, unique=True),
    worker_id=st.sampled_from(("w1", "w2")),
    hostname=st.just("host"),
    claim_id=st.integers(1, 5),
    count=st.integers(1, 3),
    lease_ms=st.sampled_from((1_000, 1_050, 3_000)),
    is_repeated=st.booleans(),
)
acks = st.builds(Ack, _asks, _some(st.builds(AckItem, _jobs, _tokens, _documents, _documents)))
fails = st.builds(Fail, _asks, _some(st.builds(FailItem, _jobs, _tokens, st.sampled_from(("", "boom")))))
heartbeats = st.builds(Heartbeat, _some(st.builds(Beat, _jobs, _tokens, _documents, _documents)))
cancels = st.builds(Cancel, _asks, _jobs)
upkeep = st.sampled_from((Promote(), Reclaim()))

operations = st.one_of(enqueues, fetches, fetches, acks, fails, heartbeats, cancels, upkeep, upkeep)
steps_ns = st.sampled_from((0, 1, 50 * MS, SECOND, 5 * SECOND, -2 * SECOND))
entries = st.tuples(steps_ns, st.lists(operations, min_size=1, max_size=4))
logs = st.lists(entries, min_size=1, max_size=25)
