"""A small OpenID Connect issuer of the tests: real HTTP, real keys, the code flow with PKCE."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

CLIENT = "corvo-console"


class TestIssuer:
    """Issues what a test asks for. `requests` counts by path."""

    __test__ = False

    def __init__(self) -> None:
        self.keys: dict[str, RSAKey | ECKey] = {"first": RSAKey.generate_key(2048, parameters={"kid": "first"})}
        self.requests: dict[str, int] = {}
        self.codes: dict[str, dict[str, str]] = {}  # code → what it was asked for with
        self.claims: dict[str, Any] = {"sub": "u-1", "email": "ada@example.com", "groups": ["ops"]}
        self.is_down = False
        self.clock_s: Callable[[], float] = time.time
        self.answer: bytes | None = None  # instead of any other
        self.url = ""

    def rotate(self, kid: str, keeps: bool = True) -> None:
        if not keeps:
            self.keys = {}
        self.keys[kid] = ECKey.generate_key("P-256", parameters={"kid": kid})

    def token(self, kid: str = "first", header: dict[str, Any] | None = None, **claims: Any) -> str:
        """An access token that counts, with changes. A claim of None is left out."""
        key = self.keys[kid]
        now = int(self.clock_s())
        said = {"iss": self.url, "aud": CLIENT, "exp": now + 600, "iat": now, **self.claims, **claims}
        alg = "RS256" if isinstance(key, RSAKey) else "ES256"
        return jwt.encode(
            {"alg": alg, "kid": kid, **(header or {})},
            {name: value for name, value in said.items() if value is not None},
            key,
            algorithms=["RS256", "ES256"],
        )

    def authorize(self, query: dict[str, list[str]]) -> str:
        """What the sign-on page of the issuer ends with: the address that it sends the browser to."""
        asked = {name: values[0] for name, values in query.items()}
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256", asked
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchange(self, form: dict[str, list[str]]) -> dict[str, Any] | None:
        given = {name: values[0] for name, values in form.items()}
        asked = self.codes.pop(given.get("code", ""), None)
        if asked is None or given.get("redirect_uri") != asked["redirect_uri"]:
            return None
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return None
        return {"id_token": self.token(nonce=asked["nonce"]), "access_token": self.token(), "token_type": "Bearer"}

    def serve(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        self.requests[path] = self.requests.get(path, 0) + 1
        if self.is_down:
            return 503, b""
        if self.answer is not None:
            return 200, self.answer
        if path == "/.well-known/openid-configuration":
            return 200, json.dumps(
                {
                    "issuer": self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "jwks_uri": f"{self.url}/keys",
                }
            ).encode()
        if path == "/keys":
            keys = [key.as_dict(private=False, kid=kid, use="sig") for kid, key in self.keys.items()]
            return 200, json.dumps({"keys": keys}).encode()
        if path == "/token" and method == "POST":
            tokens = self.exchange(parse_qs(body.decode()))
            return (200, json.dumps(tokens).encode()) if tokens else (400, b'{"error": "invalid_grant"}')
        return 404, b""


@contextmanager
def a_test_issuer() -> Iterator[TestIssuer]:
    issuer = TestIssuer()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, answer = issuer.serve(self.command, urlsplit(self.path).path, body)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = _serve

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
