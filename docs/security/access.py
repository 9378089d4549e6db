"""S32 to S50: authentication and access."""

from docs.security.rows import Case

_HERE = "gateway/access/test_credentials.py::"
_TOKENS = "gateway/access/test_tokens.py::"
_ISSUER = "gateway/access/test_issuer.py::"
_LOGIN = "gateway/access/test_oidc_login.py::"
_MATRIX = "gateway/access/test_matrix.py::test_every_endpoint_and_page_answers_as_the_table_says"
_FOREIGN = "gateway/access/test_foreign_ids.py::"

CASES = (
    Case(
        32,
        "no key; an empty, unknown, disabled, expired or doubled one",
        "401, with the same body",
        (_HERE + "test_s32_whatever_is_wrong_with_a_key_the_answer_is_the_same",),
    ),
    Case(
        33,
        "a fresh server; records of keys that cannot be read; read.db deleted",
        "a server that others reach does not start without a credential; 503, never an admin; read.db has no keys",
        (
            "cli/supervise/test_server.py::test_a_server_that_others_reach_needs_a_credential_or_a_word",
            _HERE + "test_s33_records_that_cannot_be_read_let_nobody_in",
        ),
    ),
    Case(34, "a key in the query string", "401", (_HERE + "test_s34_a_key_in_the_address_is_not_looked_at",)),
    Case(
        35,
        "the time of a wrong first byte and a wrong last byte",
        "keys are found by their SHA-256, so no time depends on their bytes; by construction, not measured",
        (_HERE + "test_s35_a_wrong_key_takes_no_time_that_depends_on_its_bytes",),
        "differs",
    ),
    Case(
        36,
        "keys at rest",
        "SHA-256 of 256 random bits, with prefix and checksum; shown once",
        (
            _HERE + "test_s36_of_a_key_only_its_hash_is_stored",
            "corvo/model/test_api_key_text.py::test_a_typing_mistake_is_found",
        ),
    ),
    Case(
        37,
        "guesses without end",
        "429 for the client that guesses; good keys are served",
        (_HERE + "test_s37_guesses_are_slowed_down_and_good_keys_are_not",),
    ),
    Case(
        38,
        "every route by every role",
        "as the table of permissions below says; a route without one does not type-check",
        (
            _MATRIX,
            "gateway/access/test_matrix.py::test_every_part_of_a_frame_answers_as_the_table_says",
            "gateway/access/test_matrix.py::test_the_table_would_see_a_permission_too_many",
        ),
    ),
    Case(39, "a worker's key calls what admins do", "403, and nothing changes", (_MATRIX,)),
    Case(
        40,
        "a key with a queue scope uses another queue: body, path, batch, chain, frame",
        "403",
        (_HERE + "test_s40_a_scope_holds_in_bodies_paths_chains_batches_and_frames",),
    ),
    Case(
        41,
        "ids of another tenant: in paths, bodies, frames, dependencies",
        "the answer for an id that nothing has, byte for byte; no shard is asked, so the time is the same",
        (
            _FOREIGN + "test_a_foreign_id_in_a_path_is_answered_like_an_absent_one",
            _FOREIGN + "test_a_foreign_id_in_a_body_is_answered_like_an_absent_one",
            _FOREIGN + "test_a_foreign_id_in_a_frame_is_answered_like_an_absent_one",
            "gateway/access/test_tenants_apart.py::test_a_leak_is_caught",
        ),
    ),
    Case(
        42,
        "a forged namespace, in the header or the body",
        "403; 400",
        (_HERE + "test_s42_a_tenant_cannot_claim_another_namespace",),
    ),
    Case(
        43,
        "a queue called `other|q`, `other` NUL `q`, `other::q`",
        "400; `::` separates nothing here, and stays a part of the tenant's own name",
        (
            _HERE + "test_s43_no_name_reaches_into_another_namespace",
            _HERE + "test_s43_the_separator_of_other_servers_is_none_here",
        ),
    ),
    Case(
        44,
        "state, attempt, tenant, created_at or lease in the body of an enqueue",
        "400, which names the field",
        (_HERE + "test_s44_what_the_server_decides_cannot_be_assigned",),
    ),
    Case(
        45,
        "tokens: unsigned, signed with the public key, wrong issuer, audience or party, expired, early, without an end,"
        " naming their own key, ID token as bearer",
        "401 each",
        (
            _TOKENS + "test_s45_a_token_with_a_wrong_claim_is_refused",
            _TOKENS + "test_s45_an_unsigned_token_is_refused",
            _TOKENS + "test_s45_the_public_key_is_no_secret_to_sign_with",
            _TOKENS + "test_s45_a_token_cannot_name_its_own_key",
            _TOKENS + "test_s45_a_key_that_nobody_published_is_refused",
            _TOKENS + "test_s48_an_id_token_counts_for_its_own_sign_on_only",
        ),
    ),
    Case(
        46,
        "tokens with random key ids",
        "at most one fetch of keys a minute",
        (_ISSUER + "test_s46_unknown_keys_cost_one_fetch_a_minute",),
    ),
    Case(
        47,
        "an issuer that is down, from the start or later",
        "503; keys that are known serve until they are too old",
        (
            _ISSUER + "test_s47_an_issuer_that_is_down_from_the_start_lets_nobody_in",
            _ISSUER + "test_s47_known_keys_serve_while_the_issuer_is_away_until_they_are_too_old",
        ),
    ),
    Case(
        48,
        "a sign-on with a wrong, missing or used state, nonce or verifier; a redirect to another site",
        "400",
        (
            _LOGIN + "test_s48_state_code_nonce_and_verifier_must_be_right",
            _LOGIN + "test_s48_a_callback_works_once",
            _LOGIN + "test_s48_another_browser_cannot_finish_what_this_one_began",
            _LOGIN + "test_s48_no_redirect_to_another_site",
        ),
    ),
    Case(
        49,
        "cookies: their flags, and changes from pages of other sites",
        "HttpOnly, SameSite=Strict, Secure on TLS; 403",
        (
            _HERE + "test_s49_a_cookie_has_its_flags_and_counts_for_changes_from_our_pages_only",
            _LOGIN + "test_s49_cookies_have_their_flags",
        ),
    ),
    Case(
        50,
        "a revoked key, on every node of a cluster, also without a leader",
        "401 within 2 s of the moment when the node learned of it; streams, events and waits end",
        (
            "system/test_revoked_keys.py::test_what_a_revoked_key_opened_is_closed_on_every_node",
            "system/test_revoked_keys.py::test_without_a_leader_a_revoked_key_stays_refused",
        ),
    ),
)
