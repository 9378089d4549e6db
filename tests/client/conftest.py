from collections.abc import Iterator

import pytest

from tests.client.playback import Playback, playing


@pytest.fixture
def playback() -> Iterator[Playback]:
    with playing() as playback:
        yield playback
