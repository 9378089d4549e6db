"""S51 to S71: malformed input for the API of jobs."""

from docs.security.rows import Case

_INPUT = "gateway/test_bad_input.py::"
_RANGES = _INPUT + "test_numbers_outside_their_range_are_refused"
_NAMES = _INPUT + "test_names_of_queues_outside_the_pattern_are_refused"

CASES = (
    Case(
        51,
        "an empty body, `null`, `[]`, truncated JSON, trailing bytes, BOM, UTF-16",
        "400",
        (
            _INPUT + "test_what_is_no_json_is_refused_on_every_route",
            _INPUT + "test_a_body_that_is_no_object_is_refused_as_a_whole",
        ),
    ),
    Case(
        52,
        "a payload one byte too large; 100 MB; too many jobs in a batch",
        "413; 413; 400",
        (
            _INPUT + "test_a_payload_may_be_as_large_as_the_limit_and_no_larger",
            _INPUT + "test_a_body_over_the_limit_is_refused_before_it_is_read",
            "corvo/ops/jobs/test_enqueue.py::test_a_batch_holds_one_to_a_thousand_jobs",
        ),
    ),
    Case(
        53,
        "nesting: 100 levels, 1,000, millions",
        "400, in a moment",
        (
            _INPUT + "test_bombs_of_depth_are_refused_wherever_they_hide",
            _INPUT + "test_a_body_that_is_costly_to_walk_is_refused_in_a_moment",
        ),
    ),
    Case(
        54,
        "the same key twice in an object",
        "the last value counts, for every check as for the job",
        ("gateway/access/test_credentials.py::test_s54_the_scope_is_compared_with_the_value_that_is_used",),
        "differs",
    ),
    Case(
        55,
        "invalid UTF-8 in a text, lone surrogates",
        "400",
        (_INPUT + "test_what_is_no_json_is_refused_on_every_route",),
    ),
    Case(
        56,
        "NaN, Infinity, 1e400",
        "400",
        (
            _INPUT + "test_what_is_no_json_is_refused_on_every_route",
            "corvo/model/test_json_input.py::test_a_number_that_no_double_holds_is_refused_by_its_field",
        ),
    ),
    Case(57, 'numbers: -1, 2^31, 2^53, 2^64, 1.0, true, `"5"`', "400, which names the field", (_RANGES,)),
    Case(
        58,
        "separators, control characters and 10,000 characters in names and keys",
        "400; stored keys never alias",
        (_NAMES, "corvo/state/test_keys.py::test_legal_names_never_alias"),
    ),
    Case(59, "Unicode in names: NFD, full width, zero width, right to left", "400: names are ASCII", (_NAMES,)),
    Case(
        60,
        "an escaped NUL in a payload",
        "kept, and searched exactly",
        ("gateway/search/jq/test_differential.py::test_sqlite_answers_like_the_oracle",),
    ),
    Case(
        61,
        "malformed times",
        "400",
        (
            _INPUT + "test_malformed_times_are_refused",
            "corvo/model/test_timestamps.py::test_any_text_is_a_moment_or_a_value_error",
        ),
    ),
    Case(
        62,
        "a content type that is none of JSON, or of another charset",
        "415",
        (_INPUT + "test_a_body_that_is_not_called_json_is_refused",),
    ),
    Case(63, "CR LF in names that reach headers or logs", "400", (_NAMES,)),
    Case(
        64,
        "cron bombs: long lists, step 0, 30 February, `R`, other digits",
        "400; any text is a schedule or refused",
        (
            "corvo/model/test_cron.py::test_what_is_no_schedule_is_refused_with_a_sentence",
            "corvo/model/test_cron.py::test_any_text_is_a_schedule_or_a_value_error",
        ),
    ),
    Case(
        65,
        "time zones: paths, NUL, `localtime`",
        "400",
        ("corvo/model/test_cron.py::test_what_is_no_time_zone_is_refused_with_a_sentence",),
    ),
    Case(
        66,
        "slots in the gap and the fold of summer time",
        "defined, and equal on every host",
        ("corvo/model/test_cron.py::test_the_slots_where_clocks_change",),
    ),
    Case(
        67,
        "dependencies on unknown jobs, too many parents, chains too long",
        "400 or 404; a cycle cannot be written, because a job depends on jobs that exist",
        (
            "gateway/test_batches.py::test_what_makes_no_sense_is_refused_and_nothing_reaches_a_shard",
            "gateway/test_batches.py::test_a_job_that_would_wait_for_an_unknown_one_is_refused",
        ),
    ),
    Case(
        68,
        "retries: delays and attempts out of range",
        "400",
        (_RANGES, _INPUT + "test_malformed_durations_are_refused"),
    ),
    Case(69, "unique keys that are too long, periods out of range", "400", (_RANGES,)),
    Case(
        70,
        "an idempotency key with another body",
        "the first job, as `duplicate`; nothing is made",
        ("corvo/rules/test_job_creation.py::test_a_unique_key_that_is_held_leads_to_its_job_and_nothing_is_made",),
        "differs",
    ),
    Case(
        71,
        "a lease token that is forged, older, or of another job",
        "409, and nothing changes",
        ("corvo/ops/jobs/test_lease.py::test_another_token_does_not",),
    ),
)
