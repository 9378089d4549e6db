"""The record of a node's processes stays small."""

from corvo.model.incidents import INCIDENTS_MAX, Incident, NodeRecord


def test_restarts_are_counted_and_only_the_last_incidents_are_kept() -> None:
    record = NodeRecord({"mirror": 0, "shard-0": 0})
    for number in range(INCIDENTS_MAX + 5):
        record.restart("shard-0")
        record.note(Incident(str(number), "shard-0", "exit status 1"))

    assert record.restarts == {"mirror": 0, "shard-0": INCIDENTS_MAX + 5}
    assert [one.at for one in record.incidents] == [str(number) for number in range(5, INCIDENTS_MAX + 5)]
