"""/docs: complete, with an index and a search, and nothing from elsewhere."""

import base64
import hashlib
import re
import shutil
import subprocess
from html import unescape

import pytest

from gateway.app import ENDPOINTS
from gateway.docs_page import SECURITY_POLICY, page
from gateway.examples import curl
from gateway.openapi import refusals_of
from gateway.routes import API

TEXT = page(ENDPOINTS)


def test_every_endpoint_is_in_the_index_and_has_its_section_with_an_example() -> None:
    for endpoint in ENDPOINTS:
        assert f'href="#{endpoint.name}"' in TEXT
        assert f'<section id="{endpoint.name}"' in TEXT
        assert curl(endpoint, API) in unescape(TEXT)
    for code in {code for endpoint in ENDPOINTS for code in refusals_of(endpoint)}:
        assert f"<code>{code}</code>" in TEXT


def test_every_link_leads_somewhere() -> None:
    ids = set(re.findall(r' id="([^"]*)"', TEXT))

    for link in re.findall(r'href="([^"]*)"', TEXT):
        assert link == "/openapi.json" or link.removeprefix("#") in ids, link
    assert len(re.findall(r' id="([^"]*)"', TEXT)) == len(ids), "an id twice"


def test_no_field_is_left_without_a_word() -> None:
    rows = re.findall(r"<tr>(.*?)</tr>", TEXT)

    assert len(rows) > 500
    assert not [row for row in rows if row.endswith("<td></td>")]


def test_nothing_comes_from_elsewhere() -> None:
    assert not re.search(r"(?i)<link|<img|<iframe|@import|url\(|javascript:|<script [^>]*src|\son\w+=", TEXT)
    assert not re.search(r'(?:href|src)="(?:https?:)?//', TEXT)


def test_the_policy_allows_the_script_of_the_page_and_no_other() -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", TEXT, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert f"script-src 'sha256-{digest}'" in SECURITY_POLICY
    assert "default-src 'none'" in SECURITY_POLICY


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_search_hides_what_does_not_fit() -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", TEXT, re.DOTALL)
    program = """
    const part = text => ({dataset: {search: text}, hidden: false});
    const parts = [part('post /enqueue queue'), part('get /queues rate_limit')];
    const box = {value: '', addEventListener(_, f) { this.input = f; }};
    const none = {hidden: true};
    const chapter = {hidden: false, querySelectorAll: () => parts};
    globalThis.document = {
      getElementById: id => id === 'search-box' ? box : none,
      querySelectorAll: what => what === '[data-search]' ? parts : [chapter],
    };
    { %s }
    const seen = [];
    for (const words of ['', 'GET queues', 'nothing of the kind']) {
      box.value = words; box.input();
      seen.push([...parts.map(one => one.hidden), chapter.hidden, none.hidden]);
    }
    console.log(JSON.stringify(seen));
    """
    ran = subprocess.run(["node", "-e", program % script], capture_output=True, text=True, timeout=30, check=True)

    assert ran.stdout.strip() == "[[false,false,false,true],[true,false,false,true],[true,true,true,false]]"
