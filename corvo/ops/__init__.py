"""The register of operations: every way to change the state.

To add one: write its file, add its class here, write its test. A number is never reused: when an operation is removed,
its number goes to `RETIRED`.
"""

import functools
import operator
from typing import Any

import msgspec

from corvo.endpoint import Endpoint, Operation
from corvo.ops.batches import add_to_batch, seal_batch
from corvo.ops.bulk import act_on_jobs, advance_bulk, begin_bulk, cancel_bulk, claim_bulk
from corvo.ops.jobs import (
    ack,
    approve,
    cancel,
    change_priority,
    delete,
    enqueue,
    fail,
    fetch,
    heartbeat,
    hold,
    move,
    reject,
    replay,
    requeue,
    reschedule,
    retry,
)
from corvo.ops.queues import (
    clear_queue,
    delete_queue,
    drain_queue,
    pause_queue,
    resume_queue,
    set_concurrency,
    set_retention,
    set_throttle,
)
from corvo.ops.schedules import (
    create_schedule,
    delete_schedule,
    fire_schedules,
    pause_schedule,
    resume_schedule,
    run,
    update_schedule,
)
from corvo.ops.upkeep import confirm, deliver, keep_ended, keep_workers, name_node, promote, reclaim, ring

OPERATIONS: tuple[type[Operation], ...] = (
    enqueue.Enqueue,
    fetch.Fetch,
    ack.Ack,
    fail.Fail,
    heartbeat.Heartbeat,
    cancel.Cancel,
    retry.Retry,
    requeue.Requeue,
    hold.Hold,
    approve.Approve,
    reject.Reject,
    delete.Delete,
    change_priority.ChangePriority,
    move.Move,
    reschedule.Reschedule,
    act_on_jobs.ActOnJobs,
    begin_bulk.BeginBulk,
    claim_bulk.ClaimBulk,
    advance_bulk.AdvanceBulk,
    cancel_bulk.CancelBulk,
    add_to_batch.AddToBatch,
    seal_batch.SealBatch,
    create_schedule.CreateSchedule,
    update_schedule.UpdateSchedule,
    delete_schedule.DeleteSchedule,
    pause_schedule.PauseSchedule,
    resume_schedule.ResumeSchedule,
    fire_schedules.FireSchedules,
    pause_queue.PauseQueue,
    resume_queue.ResumeQueue,
    drain_queue.DrainQueue,
    clear_queue.ClearQueue,
    delete_queue.DeleteQueue,
    set_concurrency.SetConcurrency,
    set_throttle.SetThrottle,
    set_retention.SetRetention,
    promote.Promote,
    reclaim.Reclaim,
    name_node.NameNode,
    deliver.Deliver,
    confirm.Confirm,
    ring.Ring,
    keep_ended.KeepEnded,
    keep_workers.KeepWorkers,
)
RETIRED: frozenset[int] = frozenset()

ENDPOINTS: tuple[Endpoint, ...] = (
    *enqueue.ENDPOINTS,
    *fetch.ENDPOINTS,
    *ack.ENDPOINTS,
    *fail.ENDPOINTS,
    *heartbeat.ENDPOINTS,
    *cancel.ENDPOINTS,
    *retry.ENDPOINTS,
    *requeue.ENDPOINTS,
    *hold.ENDPOINTS,
    *approve.ENDPOINTS,
    *reject.ENDPOINTS,
    *move.ENDPOINTS,
    *change_priority.ENDPOINTS,
    *reschedule.ENDPOINTS,
    *replay.ENDPOINTS,
    *delete.ENDPOINTS,
    *begin_bulk.ENDPOINTS,
    *cancel_bulk.ENDPOINTS,
    *add_to_batch.ENDPOINTS,
    *seal_batch.ENDPOINTS,
    *create_schedule.ENDPOINTS,
    *update_schedule.ENDPOINTS,
    *delete_schedule.ENDPOINTS,
    *pause_schedule.ENDPOINTS,
    *resume_schedule.ENDPOINTS,
    *run.ENDPOINTS,
    *pause_queue.ENDPOINTS,
    *resume_queue.ENDPOINTS,
    *drain_queue.ENDPOINTS,
    *clear_queue.ENDPOINTS,
    *delete_queue.ENDPOINTS,
    *set_concurrency.ENDPOINTS,
    *set_throttle.ENDPOINTS,
    *set_retention.ENDPOINTS,
)

AnyOperation: Any = functools.reduce(operator.or_, OPERATIONS)
decode_operation = msgspec.msgpack.Decoder(AnyOperation).decode
