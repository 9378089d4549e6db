"""The register of errands. Never change a number: outboxes and logs contain it."""

import functools
import operator
from typing import Any

import msgspec

from corvo.rules.errands import forget, make_job, make_member, member_ended, move_in, watch
from corvo.rules.errands.errand import Errand

ERRANDS: tuple[type[Errand], ...] = (
    watch.Watch,
    watch.Ended,
    make_job.MakeJob,
    member_ended.MemberEnded,
    move_in.MoveIn,
    make_member.MakeMember,
    forget.Forget,
)

AnyErrand: Any = functools.reduce(operator.or_, ERRANDS)
decode_errand = msgspec.msgpack.Decoder(AnyErrand).decode
