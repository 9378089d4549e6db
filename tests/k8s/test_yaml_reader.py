"""The reader of manifests reads what we write and refuses the rest."""

import pytest

from tests.k8s.yaml_reader import Unreadable, documents


def test_mappings_lists_and_scalars_are_read() -> None:
    text = """
# a comment
a: 1
b:
  - name: x  # why
    on: true
  - name: "y z"
c: ["ALL", 2]
---
d: plain:text
e: 0440
"""

    assert documents(text) == [
        {"a": 1, "b": [{"name": "x", "on": True}, {"name": "y z"}], "c": ["ALL", 2]},
        {"d": "plain:text", "e": 0o440},
    ]


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "a:\n    b: 1", "a: &anchor", "a: |\n  text", "a: yes", "a:\nb: 1", "a: 1\n  b: 2", "\ta: 1"]
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        documents(text)
