"""Every action on a job stands in the guide, with its command and its route."""

import pytest

from corvo.ops import ENDPOINTS
from tests.docs.pages import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "act-on-jobs.md").read_text()
ACTIONS = [endpoint for endpoint in ENDPOINTS if endpoint.path.startswith("/jobs/{job_id}")]


@pytest.mark.parametrize("endpoint", ACTIONS, ids=lambda endpoint: endpoint.name)
def test_the_guide_has_a_row_of_the_action(endpoint) -> None:
    route = f"`{endpoint.method} {endpoint.path.replace('{job_id}', '{id}')}`"

    assert any(line.startswith("| `corvo ") and route in line for line in GUIDE.splitlines()), (
        f"add a row with {route} to docs/how-to/act-on-jobs.md"
    )
