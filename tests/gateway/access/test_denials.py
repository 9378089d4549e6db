"""Denied requests: a budget for each client, one for all, and a count of the rest."""

from gateway.access.denials import OF_ALL, OF_CLIENT, Denials


def test_a_client_has_a_budget_and_the_next_record_counts_the_rest() -> None:
    now = [0.0]
    denials = Denials(lambda: now[0])

    taken = [denials.take("a") for _ in range(20)]
    assert taken == [0] * int(OF_CLIENT.burst) + [None] * (20 - int(OF_CLIENT.burst))
    now[0] += 1 / OF_CLIENT.per_s
    assert denials.take("a") == 20 - OF_CLIENT.burst
    assert denials.take("a") is None


def test_clients_do_not_share_their_budgets_but_all_have_one() -> None:
    denials = Denials(lambda: 0.0)

    assert [denials.take(f"client {number}") for number in range(int(OF_ALL.burst) + 3)] == [0] * int(OF_ALL.burst) + [
        None
    ] * 3
