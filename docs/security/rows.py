"""The type of a row."""

from typing import Literal, NamedTuple

# answered: as the case wants it. differs: safe in another way, which `answered` says. open: not shown by any test.
# not built: there is nothing yet that could be asked.
Status = Literal["answered", "differs", "open", "not built"]


class Case(NamedTuple):
    number: int
    asked: str
    answered: str
    tests: tuple[str, ...] = ()  # file below tests/ and name of the test: `gateway/test_pages.py::test_x`
    status: Status = "answered"

    @property
    def name(self) -> str:
        return f"S{self.number:02d}"
