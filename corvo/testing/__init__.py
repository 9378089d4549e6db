"""Aids for the tests of programs that use Corvo: a pytest plugin, which comes with the server.

def test_a_letter_is_sent(corvo_inline):            tasks run at once, in this process
    corvo_inline(app)
    signup("ada@example.org")
    assert corvo_inline.results("emails.send") == [True]

def test_a_letter_is_retried(corvo_server):         a real server, empty at the start of each test
    …
    corvo_server.clock.advance(hours=1)
"""
