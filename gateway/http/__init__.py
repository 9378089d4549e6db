"""Everything that touches bytes of HTTP: servers, the fast path, WebSocket frames, requests and responses."""
