"""S72 to S95: search, outbound requests, operations."""

from docs.security.rows import Case

_SEARCH = "gateway/search/test_search_texts.py::"
_WEBHOOKS = "there are no webhooks yet"
_IMAGE = "k8s/test_image.py::"

CASES = (
    Case(
        72,
        "SQL in filters, sorts, cursors, limits",
        "bound, or refused with 400; connections only read",
        (
            _SEARCH + "test_hostile_text_means_itself",
            "gateway/search/jq/test_mistakes.py::test_values_keys_and_paths_are_bound",
        ),
    ),
    Case(
        73,
        "syntax of FTS5 in a search for words",
        "words mean themselves",
        (_SEARCH + "test_hostile_text_means_itself", _SEARCH + "test_what_cannot_be_meant_is_refused"),
    ),
    Case(
        74,
        "`payload_jq`: recursion, `env`, `input`, endless generators, 1 MB",
        "400: a small grammar of our own, fuzzed",
        (
            "gateway/search/jq/test_mistakes.py::test_any_text_is_understood_or_refused",
            "gateway/search/jq/test_mistakes.py::test_what_is_beyond_a_limit_is_refused",
            "fuzz/test_inputs.py::test_the_beginnings_break_no_promise",
        ),
    ),
    Case(
        75,
        "regular expressions that backtrack",
        "RE2 matches in linear time; others are refused",
        ("gateway/search/jq/test_mistakes.py::test_a_pattern_that_takes_more_than_linear_time_is_refused",),
    ),
    Case(
        76,
        "a costly search",
        "cut off by a budget of time; the page says that it is incomplete",
        (
            _SEARCH + "test_a_search_out_of_time_hands_back_what_it_has_and_goes_on_later",
            _SEARCH + "test_a_real_budget_ends_a_real_walk",
        ),
    ),
    Case(
        77,
        "a cursor that was tampered with",
        "400, or another place in the same list: a cursor gives no access",
        ("gateway/search/test_cursor.py::test_what_is_no_cursor_is_refused",),
        "differs",
    ),
    Case(78, "CSV cells that begin with `=`", "there is no export of CSV", (), "not built"),
    Case(
        79,
        "HTML in payloads, errors and names",
        "answers are JSON with `nosniff` and a policy that allows nothing; `/docs`"
        " shows nothing of a client; the console runs no script but its own files, and writes values as text",
        (
            "gateway/test_pages.py::test_documents_may_load_nothing_from_elsewhere",
            "gateway/test_docs_page.py::test_the_policy_allows_the_script_of_the_page_and_no_other",
            "gateway/console/test_assets.py::test_a_page_may_run_and_load_nothing_but_its_own_files",
        ),
    ),
    *(
        Case(number, asked, _WEBHOOKS, (), "not built")
        for number, asked in [
            (80, "webhooks to private addresses"),
            (81, "DNS rebinding"),
            (82, "redirects to private addresses"),
            (83, "receivers that answer slowly, or without end"),
            (84, "signatures: changed, replayed, rotated"),
            (85, "secrets of webhooks in answers, logs and exports"),
        ]
    ),
    Case(
        86,
        "the port between nodes: no key, a wrong one, noise, frames above the limit",
        "closed; CURVE and a size limit",
        (
            "shards/group/test_peers.py::test_who_does_not_know_the_secret_cannot_connect_and_is_told_of_once",
            "shards/group/test_peers.py::test_a_letter_above_the_bound_is_not_sent_and_costs_no_link",
            "shards/group/test_messages.py::test_noise_is_refused_and_nothing_worse",
        ),
    ),
    Case(
        87,
        "forged messages on local sockets",
        "the sockets are in a directory of their owner alone",
        ("cli/supervise/test_server.py::test_the_sockets_are_for_their_owner_only",),
    ),
    Case(
        88,
        "messages of another cluster, or of another life of a node",
        "dropped and counted",
        (
            "shards/group/test_messages.py::test_a_letter_of_another_group_is_refused",
            "shards/group/test_peers.py::test_what_is_not_for_us_is_counted_and_told_of_once",
        ),
    ),
    Case(
        89,
        "internal frames: length bombs, deep arrays",
        "refused; the process goes on",
        (
            "shards/intake/test_admission.py::test_an_unknown_ask_is_refused_by_itself",
            "shards/test_loop.py::test_a_shard_serves_whatever_strangers_send",
            "fuzz/test_inputs.py::test_an_input_that_was_found_breaks_no_promise_now",
        ),
    ),
    Case(
        90,
        "a noisy neighbour",
        "429 for its client; the effect on others' p99 has no test",
        ("gateway/http/test_rate_limits.py::test_clients_do_not_share_and_memory_is_bounded",),
        "differs",
    ),
    Case(
        91,
        "metrics, documents, debug routes from outside",
        "401, or 404",
        (
            "gateway/access/test_credentials.py::test_s91_pages_tell_strangers_nothing",
            "gateway/access/test_matrix.py::test_every_page_is_in_the_table",
        ),
    ),
    Case(
        92,
        "the container: its user, root file system, capabilities, token",
        "asserted of Dockerfile and manifests",
        (
            "k8s/test_manifests.py::test_the_pod_may_do_nothing_that_it_need_not",
            _IMAGE + "test_it_runs_as_the_user_of_the_pod",
        ),
    ),
    Case(
        93,
        "the supply chain",
        "every package by hash; there is no SBOM, no provenance and no scan yet",
        (
            "tidy/test_locks.py::test_a_lock_holds_what_the_project_asks_for",
            _IMAGE + "test_packages_come_from_the_lock_by_hash",
        ),
        "differs",
    ),
    Case(
        94,
        "secrets in arguments, environments and logs of processes",
        "none",
        ("system/test_revoked_keys.py::test_no_process_shows_a_secret",),
    ),
    Case(
        95,
        "the audit log: changes, denied attempts, tampering",
        "recorded before the change; a chain that shows tampering",
        (
            "system/test_audit.py::test_ten_kinds_of_changes_are_listed_exported_verified_and_a_forgery_shows",
            "gateway/access/test_auditing.py::test_a_forbidden_request_is_recorded_once_with_who_it_was",
            "gateway/access/test_auditing.py::test_every_endpoint_that_changes_something_is_covered_and_work_is_not",
        ),
    ),
)
