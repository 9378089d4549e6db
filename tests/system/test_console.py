"""The console in a real browser, against a real server: every page, the main actions, two roles, a server that dies."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from chaos.node import Node
from gateway.console.assets import Console
from gateway.console.build import MODULES
from tests.support.waiting import eventually
from tests.system.console_scene import FAILING, Scene, under_prefix

CHROMIUM = shutil.which("chromium")
AXE = MODULES / "axe-core" / "axe.min.js"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 20_000

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed here"),
    pytest.mark.skipif(not Console().is_built or not AXE.exists(), reason="the console is not built here (make setup)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        node = Node.start(Path(folder) / "data")
        try:
            scene = Scene(node.url)
            yield scene
            scene.close()
        finally:
            node.stop()


class Visit:
    """A page, and all that its browser complained of."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda one: self.complaints.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}/ui/{path}")
        self.page.wait_for_selector("h1")

    def log_in(self, key: str) -> None:
        self.open("")
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.wait_for_selector("nav.sidebar", state="attached")
        self.complaints.clear()  # 401 before the login

    def violations(self) -> list[str]:
        """What axe finds. It runs outside of the page's policy, as an extension would."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{one['id']}: {one['help']}: {node['target']} {node['failureSummary']}"
            for one in found["violations"]
            for node in one["nodes"][:2]
        ]


@contextmanager
def visit(browser: Browser, url: str, **options: object) -> Iterator[Visit]:
    context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]
    try:
        yield Visit(context.new_page(), url)
    finally:
        context.close()


@pytest.fixture(scope="module")
def admin(browser: Browser, scene: Scene) -> Iterator[Visit]:
    with visit(browser, scene.url, viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as seen:
        seen.log_in(scene.keys["admin"])
        yield seen


PAGES = {
    "": "Home",
    "queues": "Queues",
    "queues/mail": "mail",
    "queues/a/b": "a/b",
    "workers": "Workers",
    "workers/worker-1": "worker-1",
    "events": "Events",
    "jobs": "Search",
    "dead": "Dead",
    "held": "Held",
    "scheduled": "Scheduled",
    "batches": "Batches",
    "schedules": "Schedules",
    "bulk": "Bulk operations",
    "cluster": "Cluster",
    "settings": "Settings",
    "settings?tab=roles": "Settings",
    "settings?tab=namespaces": "Settings",
    "settings?tab=sso": "Settings",
    "audit": "Audit",
}


@pytest.mark.parametrize("path", [*PAGES, "jobs/$JOB", "batches/$BATCH"])
def test_every_page_is_there_for_everybody(admin: Visit, scene: Scene, path: str) -> None:
    """Readable by assistive technology in both themes, without an error, within the policy."""
    admin.complaints.clear()
    admin.open(path.replace("$JOB", scene.dead[0]).replace("$BATCH", scene.batch))
    expect(admin.page.locator("h1")).to_contain_text(PAGES.get(path, ""))
    expect(admin.page.locator(".loading")).to_have_count(0)

    assert admin.violations() == []
    admin.page.emulate_media(color_scheme="dark")
    assert admin.violations() == []
    admin.page.emulate_media(color_scheme="light")
    assert admin.complaints == [], "a violation of the policy would be here too"


def test_a_narrow_screen_shows_it_all(browser: Browser, scene: Scene) -> None:
    with visit(browser, scene.url, viewport={"width": 360, "height": 740}, reduced_motion="reduce") as phone:
        phone.log_in(scene.keys["admin"])
        for path in ("", "queues", "queues/mail", f"jobs/{scene.dead[0]}", "cluster"):
            phone.open(path)
            expect(phone.page.locator(".loading")).to_have_count(0)
            overhang = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert phone.page.evaluate(overhang) <= 0, f"{path} is wider than the screen"
        phone.page.get_by_role("button", name="Open the navigation").click()
        phone.page.get_by_role("link", name="Schedules").click()
        expect(phone.page.locator("h1")).to_have_text("Schedules")


def test_a_job_shows_its_way_and_its_error(admin: Visit, scene: Scene) -> None:
    admin.open(f"jobs/{scene.dead[0]}")
    picture = admin.page.locator(".life svg")
    expect(picture).to_have_attribute("aria-label", re.compile("Pending → Active → Dead"))
    expect(admin.page.locator(".error-text").first).to_have_text(FAILING)
    expect(admin.page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    expect(admin.page.get_by_role("button", name="Approve")).to_have_count(0)


def test_a_queue_is_paused_and_goes_on(admin: Visit, scene: Scene) -> None:
    admin.open("queues/mail")
    admin.page.get_by_role("button", name="Pause mail").click()
    eventually(lambda: scene.ask("GET", "/queues/mail")["paused"])
    admin.page.get_by_role("button", name="Resume mail").click()
    eventually(lambda: not scene.ask("GET", "/queues/mail")["paused"])


def test_limits_are_changed_and_shown(admin: Visit, scene: Scene) -> None:
    admin.open("queues/mail")
    admin.page.get_by_role("button", name="Limits").click()
    admin.page.get_by_label("Active at a time").fill("7")
    admin.page.get_by_role("button", name="Save").click()
    expect(admin.page.locator(".figures")).to_contain_text("/ 7")
    assert scene.ask("GET", "/queues/mail")["max_concurrency"] == 7


def test_a_job_is_enqueued(admin: Visit, scene: Scene) -> None:
    admin.open("")
    admin.page.keyboard.press("n")
    admin.page.get_by_label("Queue", exact=True).fill("fresh")
    admin.page.get_by_label("Payload (JSON)").fill('{"hello": "world"}')
    admin.page.get_by_role("dialog").get_by_role("button", name="Enqueue").click()
    expect(admin.page.locator("h1")).to_contain_text("_job_")
    assert scene.job(admin.page.url.rsplit("/", 1)[1])["payload"] == {"hello": "world"}


def test_held_jobs_are_decided_by_key(admin: Visit, scene: Scene) -> None:
    admin.open("held")
    expect(admin.page.locator("tbody tr")).to_have_count(2)
    admin.page.keyboard.press("j")
    expect(admin.page.locator("tr.cursor")).to_have_count(1)
    admin.page.keyboard.press("a")
    eventually(lambda: {scene.job(one)["state"] for one in scene.held} == {"held", "pending"})


def test_many_jobs_are_retried_after_a_preview(admin: Visit, scene: Scene) -> None:
    admin.open("jobs?q=state:dead+queue:mail")
    admin.page.get_by_label("Select all rows").check()
    admin.page.get_by_role("toolbar").get_by_role("button", name="Retry").click()
    dialog = admin.page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 jobs match now")
    dialog.get_by_role("button", name="Retry: 2 jobs").click()
    eventually(lambda: [scene.job(one)["state"] for one in scene.dead] == ["pending", "pending"])


def test_a_view_is_a_link_and_a_wrong_filter_says_why(admin: Visit) -> None:
    admin.open("jobs?q=state:pending+queue:payments")
    expect(admin.page.get_by_role("button", name="Pending")).to_have_attribute("aria-pressed", "true")
    admin.page.get_by_label("Filter", exact=True).fill("attempt_min:many")
    expect(admin.page.get_by_role("alert")).to_contain_text("attempt_min: expected a number")
    assert "attempt_min" in admin.page.url


def test_the_keyboard_goes_everywhere(admin: Visit) -> None:
    admin.open("")
    admin.page.keyboard.press("?")
    expect(admin.page.get_by_role("dialog")).to_contain_text("go anywhere")
    admin.page.keyboard.press("Escape")
    admin.page.keyboard.press("g")
    admin.page.keyboard.press("q")
    expect(admin.page.locator("h1")).to_have_text("Queues")
    admin.page.keyboard.press("Control+k")
    admin.page.get_by_role("combobox").fill("payments")
    admin.page.keyboard.press("Enter")
    expect(admin.page.locator("h1")).to_have_text("payments")


def test_what_may_not_be_done_is_not_offered(browser: Browser, scene: Scene) -> None:
    with visit(browser, scene.url) as reader:
        reader.log_in(scene.keys["readonly"])
        reader.open("queues/mail")
        expect(reader.page.locator(".figures")).to_be_visible()
        for name in ("Pause", "Clear", "Delete", "Limits", "Enqueue"):
            assert reader.page.get_by_role("button", name=name).count() == 0, name
        assert reader.page.locator("input[type=checkbox]").count() == 0
        reader.page.get_by_role("button", name="Sign out").click()
        expect(reader.page.get_by_label("API key")).to_be_visible()


def test_a_wrong_key_is_refused_with_a_sentence(browser: Browser, scene: Scene) -> None:
    with visit(browser, scene.url) as stranger:
        stranger.open("")
        stranger.page.get_by_label("API key").fill("sk_wrong")
        stranger.page.get_by_role("button", name="Sign in", exact=True).click()
        expect(stranger.page.get_by_role("alert")).to_contain_text("unknown")
        assert stranger.violations() == []


def test_it_works_under_a_prefix(browser: Browser, scene: Scene) -> None:
    with under_prefix(scene.url, "/tools/corvo") as url, visit(browser, url) as seen:
        seen.log_in(scene.keys["admin"])
        seen.open("queues/a/b")
        expect(seen.page.locator("h1")).to_have_text("a/b")
        seen.page.get_by_role("button", name="Pause a/b").click()
        eventually(lambda: scene.ask("GET", "/queues/a%2Fb")["paused"])
        seen.page.get_by_role("link", name="Cluster").click()
        expect(seen.page.locator("h1")).to_have_text("Cluster")
        assert seen.page.url == f"{url}/ui/cluster"
        assert seen.complaints == []


def test_a_server_that_dies_is_noticed_and_so_is_its_return(browser: Browser) -> None:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        node = Node.start(Path(folder) / "data")
        try:
            with visit(browser, node.url) as seen:
                seen.open("queues")
                bind = node.settings.bind
                node.kill_all()
                banner = seen.page.locator(".away-banner")  # a page that could not be loaded has an alert of its own
                expect(banner).to_contain_text("does not answer")
                expect(banner).to_contain_text("next try in")
                expect(seen.page.locator("h1")).to_have_text("Queues")
                node = Node.start(Path(folder) / "data", "--bind", bind)
                expect(banner).to_have_count(0, timeout=60_000)
        finally:
            node.kill_all()
