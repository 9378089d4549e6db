"""For Django: settings, jobs of committed transactions, and `manage.py corvo_worker`.

INSTALLED_APPS = [..., "corvo_client.contrib.django"]
CORVO = {"SERVER": "http://localhost:8080", "API_KEY": "…", "TASKS": "shop.tasks:app"}
"""

from collections.abc import Generator
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, transaction

from ...worker import Context, Corvo, TaskCall

_KNOWN = {"SERVER", "API_KEY", "CA_CERT", "TASKS"}


def corvo_settings() -> dict[str, Any]:
    found: dict[str, Any] = getattr(settings, "CORVO", {})
    unknown = sorted(set(found) - _KNOWN)
    if unknown:
        raise ImproperlyConfigured(f"CORVO has {', '.join(unknown)}; it may have {', '.join(sorted(_KNOWN))}")
    return found


def make_app() -> Corvo:
    """The `Corvo` of a project's tasks, by its settings. Each job begins and ends with usable database connections."""
    given = corvo_settings()
    app = Corvo(given.get("SERVER"), api_key=given.get("API_KEY"), ca_cert=given.get("CA_CERT"))
    app.middleware(_with_connections)
    return app


def enqueue_on_commit(app: Corvo, call: TaskCall, using: str | None = None) -> None:
    """Enqueues `task.s(…)` when the transaction is committed, and not at all when it is rolled back. Outside of a
    transaction: at once. If the process dies between the commit and the enqueue, there is no job: where that matters,
    use an outbox."""
    transaction.on_commit(lambda: app.enqueue(call), using=using)


def _with_connections(context: Context) -> Generator[None, Any, None]:
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()
