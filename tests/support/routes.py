"""Paths that the endpoints' routes match, derived from the routes."""

import re

from corvo.endpoint import Endpoint
from tests.support.builders import job_id

PARAMETERS = {"job_id": job_id(1), "batch_id": "b1", "bulk_id": "bulk_1"}  # any other name stands for itself


def sample_parameters(endpoint: Endpoint) -> tuple[str, ...]:
    return tuple(PARAMETERS.get(name, name) for name in re.findall(r"{(\w+)}", endpoint.path))


def sample_path(endpoint: Endpoint) -> str:
    return re.sub(r"{(\w+)}", lambda match: PARAMETERS.get(match[1], match[1]), endpoint.path)
