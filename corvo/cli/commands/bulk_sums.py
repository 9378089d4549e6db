"""Sums over the outcomes of several bulk requests. Pure."""

from collections import Counter
from collections.abc import Sequence

from corvo.client.answers import BulkDone, BulkView

SAMPLES_MAX = 100


def added_up(outcomes: Sequence[BulkDone]) -> BulkDone:
    if len(outcomes) == 1:
        return outcomes[0]
    codes: Counter[str] = Counter()
    for outcome in outcomes:
        codes.update(outcome.error_codes)
    return BulkDone(
        affected=sum(one.affected for one in outcomes),
        errors=sum(one.errors for one in outcomes),
        duration_ms=sum(one.duration_ms for one in outcomes),
        matched=sum(one.matched for one in outcomes),
        matched_is_exact=all(one.matched_is_exact for one in outcomes),
        dry_run=any(one.dry_run for one in outcomes),
        error_codes=dict(codes),
        error_samples=[sample for one in outcomes for sample in one.error_samples][:SAMPLES_MAX],
        sample=[sample for one in outcomes for sample in one.sample][:SAMPLES_MAX],
    )


def as_done(view: BulkView) -> BulkDone:
    """An operation that has ended, in the form of an action that was done within its request."""
    return BulkDone(
        affected=view.affected,
        errors=view.errors,
        duration_ms=0.0,
        matched=view.processed,
        error_samples=view.error_samples,
    )
