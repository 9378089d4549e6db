"""S01 to S31: HTTP."""

from docs.security.rows import Case

_SERVER = "gateway/http/test_hypercorn.py::"
_HTTP2 = "gateway/http/test_http2.py::"
_INPUT = "gateway/test_bad_input.py::"
_PAGES = "gateway/test_pages.py::"
_CLOSED = _SERVER + "test_after_a_doubtful_request_the_connection_is_closed"
_KEPT = _SERVER + "test_after_a_refusal_the_connection_is_usable"

CASES = (
    Case(
        1,
        "headers, one byte a second",
        "closed at the idle time of a connection",
        (_SERVER + "test_headers_that_dribble_are_cut_off_at_the_idle_time_of_a_connection",),
    ),
    Case(
        2,
        "a body that does not come, or trickles",
        "408, and closed",
        (
            _SERVER + "test_a_body_that_does_not_come_is_given_up",
            "gateway/http/test_messages.py::test_a_body_that_trickles_is_given_up_as_well",
        ),
    ),
    Case(
        3,
        "a client that does not read its answer or its events",
        "closed after a time; what waits for it is bounded",
        (
            _HTTP2 + "test_a_client_that_does_not_read_is_given_up",
            "gateway/api/test_events.py::test_a_client_that_does_not_read_is_closed",
        ),
    ),
    Case(
        4,
        "thousands of silent connections",
        "others are served; there is no limit on connections of one address",
        (_SERVER + "test_many_silent_connections_keep_nobody_waiting",),
        "differs",
    ),
    Case(
        5,
        "Content-Length above the limit",
        "413 before the body is read, and closed",
        (_CLOSED, _INPUT + "test_a_body_over_the_limit_is_refused_before_it_is_read"),
    ),
    Case(
        6,
        "a chunked body that grows past the limit",
        "413 at the limit, and closed",
        (_SERVER + "test_a_chunked_body_past_the_limit_is_refused_at_the_limit",),
    ),
    Case(7, "two different Content-Length", "400, and closed", (_CLOSED,)),
    Case(
        8,
        "two equal Content-Length, or `5, 5`",
        "read as one; what follows is never taken for a request",
        (_SERVER + "test_hypercorn_takes_two_equal_lengths_as_one",),
        "differs",
    ),
    Case(
        9,
        "Content-Length together with Transfer-Encoding",
        "400, and closed",
        (_CLOSED, _SERVER + "test_the_body_of_a_refused_request_is_never_taken_for_the_next_request"),
    ),
    Case(10, "other transfer encodings, or a space before the colon", "501 or 400, and closed", (_CLOSED,)),
    Case(
        11,
        "bad chunks: a wrong end, `0x5`, 21 digits",
        "400, or cut off",
        (_SERVER + "test_bad_chunks_are_never_a_request",),
    ),
    Case(
        12,
        "bare LF as line ends, folded headers",
        "read by the server's parser; the fast path leaves them to it, so both read the same",
        (
            _SERVER + "test_hypercorn_reads_old_line_ends_and_folded_headers",
            "gateway/http/test_fast_path.py::test_what_is_recognised_is_what_the_server_would_read",
            "fuzz/test_inputs.py::test_the_beginnings_break_no_promise",
        ),
        "differs",
    ),
    Case(13, "NUL or CR in the value of a header", "400, and closed", (_CLOSED,)),
    Case(
        14,
        "20 KB of headers, 1,500 headers",
        "431, and closed",
        (_CLOSED, _HTTP2 + "test_headers_that_are_too_large_are_refused"),
    ),
    Case(15, "a URL of 17 KB", "414, and closed", (_CLOSED,)),
    Case(16, "an absolute target that names another host", "400", (_KEPT,)),
    Case(17, "HTTP/9.9; no Host; two Hosts", "505; 400; 400", (_CLOSED, _KEPT)),
    Case(
        18,
        "CONNECT, TRACE, an unknown method",
        "405, or refused by the parser",
        (_KEPT, _SERVER + "test_connect_is_refused"),
    ),
    Case(
        19,
        "HTTP/2 without TLS, by prior knowledge or by upgrade",
        "every request is refused with 505",
        (
            _SERVER + "test_hypercorn_speaks_http_2_in_the_clear_and_every_request_is_refused",
            _SERVER + "test_hypercorn_upgrades_to_http_2_and_every_request_is_refused",
        ),
    ),
    Case(
        20,
        "HTTP/2: rapid reset, too many streams, header bomb, no window",
        "the connection ends; memory is bounded",
        (
            _HTTP2 + "test_a_client_that_takes_back_all_it_asks_is_sent_away",
            _HTTP2 + "test_more_streams_than_agreed_end_the_connection",
            _HTTP2 + "test_headers_beyond_all_measure_end_the_connection",
            _HTTP2 + "test_a_client_that_does_not_read_is_given_up",
        ),
    ),
    Case(
        21,
        "`Expect: 100-continue`, then silence",
        "408 after the time for a body",
        (
            _SERVER + "test_hypercorn_says_continue_before_it_asks_us",
            _SERVER + "test_a_body_that_does_not_come_is_given_up",
        ),
    ),
    Case(
        22,
        "many requests sent ahead",
        "answered in order",
        (_SERVER + "test_requests_sent_ahead_are_answered_in_order",),
    ),
    Case(
        23,
        "a stream or events without a credential; a cookie from another origin; a frame above the limit",
        "401; 403; closed with 1009 (the limit is that of a body)",
        (
            "gateway/access/test_matrix.py::test_every_part_of_a_frame_answers_as_the_table_says",
            "gateway/access/test_credentials.py::test_s23_a_stream_by_cookie_needs_a_page_of_ours",
            "gateway/http/test_websocket.py::test_a_frame_that_is_too_large_closes_the_stream",
        ),
    ),
    Case(
        24,
        "a Range header with 10,000 ranges",
        "ignored: no file is served",
        (_PAGES + "test_nothing_else_is_served",),
        "differs",
    ),
    Case(
        25,
        "a multipart upload to a JSON route",
        "415",
        ("gateway/http/test_messages.py::test_every_other_kind_of_body_is_refused",),
    ),
    Case(
        26,
        "compressed bodies: bombs, nested, truncated",
        "415; nothing is decompressed",
        (_INPUT + "test_a_compressed_body_is_refused",),
    ),
    Case(
        27,
        "encoded `../`, NUL and slash in paths",
        "400; in a name, an encoded slash is a part of the name",
        (
            _KEPT,
            "gateway/http/test_messages.py::test_an_address_that_two_readers_could_read_differently_is_refused",
            "gateway/http/test_messages.py::test_an_encoded_slash_in_a_queues_name_parts_nothing",
        ),
    ),
    Case(28, "invalid UTF-8 in the path", "400", (_KEPT,)),
    Case(
        29,
        "a Host header that names another server",
        "repeated nowhere",
        (
            _PAGES + "test_the_host_that_a_client_names_is_repeated_nowhere",
            "gateway/access/test_oidc_login.py::test_s29_the_host_header_names_no_address_elsewhere",
        ),
    ),
    Case(30, "traversal to files, dotfiles", "404", (_KEPT, _PAGES + "test_nothing_else_is_served")),
    Case(
        31,
        "what errors and headers tell of the server",
        "no stack, path, version or banner",
        (_SERVER + "test_nothing_tells_what_serves",),
    ),
)
