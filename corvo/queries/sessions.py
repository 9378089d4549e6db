"""Login and logout of a browser. Answered by the gateway, which sets and clears the cookie.

Programs need neither: they send their key with every request.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Body, Endpoint
from corvo.model.access import OPEN

_Credential = Annotated[str, Meta(max_length=8 * 1024)]


class LoginBody(Body):
    """One of the two."""

    key: Annotated[_Credential, Meta(description="an API key")] = ""
    password: Annotated[_Credential, Meta(description="the admin password")] = ""


class LoggedIn(msgspec.Struct):
    """The cookie is in the header `Set-Cookie`."""

    status: str
    name: str
    roles: Annotated[list[str], Meta(description="roles of the credential")]
    namespace: Annotated[str, Meta(description="namespace that it acts in")]


class LoggedOut(msgspec.Struct):
    status: str


ENDPOINTS = (
    Endpoint(
        name="login",
        access=OPEN,
        method="POST",
        path="/auth/login",
        summary="Log a browser in: check a key or the admin password, and set the cookie `corvo_api_key`",
        body=LoginBody,
        example={"key": "sk_5rDXxVcT0hVrq0tJX1fTgkqgWgQLnLQwl0Wb3qVfYH2Ab1Cd9"},
        answers={200: LoggedIn},
        refusals=("UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "ACCESS_UNAVAILABLE"),
    ),
    Endpoint(
        name="logout",
        access=OPEN,
        method="POST",
        repeats="freely",
        path="/auth/logout",
        summary="Log a browser out: clear the cookie",
        answers={200: LoggedOut},
        refusals=("FORBIDDEN",),
    ),
)
