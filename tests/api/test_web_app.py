"""The web app's page and assets: who gets them, at which addresses, with which headers."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast import Flow, Holdfast
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.local_token import LocalToken
from holdfast.api.routes.all import THEMES
from tests.api.conftest import Server, serving

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html"}
INDEX = """<!doctype html><meta name="holdfast-root" content=""><meta name="holdfast-release" content="">
<link rel="icon" href="./static/mark.svg">
<noscript><meta http-equiv="refresh" content="0; url=./plain/"></noscript>
<script type="module" crossorigin src="./assets/index-Ab12_x-9.js"></script>
<link rel="stylesheet" href="./assets/index-c0ffee.css">"""
SCRIPT = b"console.log(1);" * 100


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A built app, as small as one can be."""
    assets = tmp_path / "ui" / "assets"
    assets.mkdir(parents=True)
    (tmp_path / "ui" / "index.html").write_text(INDEX)
    (assets / "index-Ab12_x-9.js").write_bytes(SCRIPT)
    (assets / "index-Ab12_x-9.js.gz").write_bytes(gzip.compress(SCRIPT))
    (assets / "index-c0ffee.css").write_text("a{}")
    return tmp_path / "ui"


@pytest.fixture
async def app(tmp_path: Path, built: Path, anyio_backend: str) -> AsyncIterator[Server]:
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        serving(hf, ApiSettings(web_app=built)) as found,
    ):
        yield found


async def get(server: Server, path: str, **headers: str) -> httpx2.Response:
    return await server.client.get(path, headers={**HTML, **headers}, follow_redirects=False)


@pytest.mark.covers("WB-1-server", "WB-2")
@pytest.mark.parametrize(
    "path",
    ["/", "/inbox", "/inbox/mine/abc", "/holds/abc", "/runs", "/runs/abc", "/flows/a%2Fb%20%C3%A9/start",
     "/editor/claims", "/operations/workers", "/settings"],
)  # fmt: skip
async def test_the_app_answers_at_each_of_its_addresses(app: Server, path: str) -> None:
    answer = await get(app, path)
    assert answer.status_code == 200
    assert 'src="/assets/index-Ab12_x-9.js"' in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert 'name="holdfast-release" content="Ab12_x-9"' in answer.text


@pytest.mark.covers("WB-2")
async def test_programs_get_json_on_shared_paths_and_unknown_paths_are_404(app: Server) -> None:
    listed = await app.client.get("/runs", headers={"Accept": "application/json"})
    assert listed.json() == {"items": [], "next": None}
    assert (await get(app, "/runs/a/b")).status_code == 404
    assert (await get(app, "/nothing")).status_code == 404
    assert (await app.client.post("/inbox", headers=HTML)).status_code in (404, 405)
    assert (await get(app, "/assets/index-0000.js")).status_code == 404


@pytest.mark.covers("WB-1-server")
async def test_the_page_has_the_path_prefix_of_its_server(tmp_path: Path, built: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
        own = LocalToken()
        app = build(hf, Authenticator(hf, local=own), ApiSettings(web_app=built), THEMES)
        whole = httpx2.ASGITransport(app=Starlette(routes=[Mount("/desk", app)]))
        headers = {**HTML, "Authorization": f"Bearer {own.token}"}
        async with httpx2.AsyncClient(
            transport=whole, base_url="http://localhost", headers=headers
        ) as client:
            page = (await client.get("/desk/runs/r1")).text
            assert 'name="holdfast-root" content="/desk"' in page
            assert 'src="/desk/assets/index-Ab12_x-9.js"' in page
            assert 'url=/desk/plain/runs/r1"' in page
            assert (await client.get("/desk/assets/index-c0ffee.css")).status_code == 200
            assert 'href="/desk/plain/runs"' in (await client.get("/desk/plain/")).text


@pytest.mark.covers("WB-3")
@pytest.mark.parametrize(
    ("path", "plain"),
    [("/", "/plain/"), ("/inbox/mine/h1", "/plain/holds/h1"), ("/runs/r1", "/plain/runs/r1"),
     ("/flows/a%2Fb/start", "/plain/flows/a/b"), ("/operations/workers", "/plain/?needs=operations"),
     ("/operations", "/plain/?needs=operations"), ("/editor/a", "/plain/?needs=editor")],
)  # fmt: skip
async def test_without_scripts_an_address_leads_to_its_plain_page(app: Server, path: str, plain: str) -> None:
    assert f'url={plain}"' in (await get(app, path)).text


@pytest.mark.covers("WB-3")
async def test_without_scripts_the_inbox_says_why_it_is_there_in_place_of_another_page(app: Server) -> None:
    for needs, name in (("operations", "Operations"), ("editor", "The editor of flow documents")):
        assert f"<strong>{name} needs JavaScript.</strong>" in (await get(app, f"/plain/?needs={needs}")).text
    for other in ("", "?needs=%3Cb%3E"):
        assert "needs JavaScript" not in (await get(app, f"/plain/{other}")).text


@pytest.mark.covers("WB-3")
async def test_a_plain_page_loads_nothing_of_the_app_and_links_to_plain_pages(app: Server) -> None:
    answer = await get(app, "/plain/")
    assert answer.status_code == 200
    assert "/assets/" not in answer.text
    links = re.findall(r'(?:href|src)="([^"#]+)"', answer.text)
    assert links
    assert all(link.startswith("/plain/") for link in links), links
    for link in links:
        assert (await get(app, link)).status_code == 200, link


@pytest.mark.covers("WB-53", "WEB-CODE")
async def test_the_policy_allows_no_inline_script_and_a_new_nonce_for_styles_each_time(app: Server) -> None:
    seen: set[str] = set()
    for _ in range(2):
        answer = await get(app, "/inbox/mine")
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe" not in policy
        (nonce,) = re.findall(r"style-src 'self' 'nonce-([^']+)'", policy)
        assert f'<script type="module" nonce="{nonce}"' in answer.text
        seen.add(nonce)
    assert len(seen) == 2


@pytest.mark.covers("WB-62-assets")
async def test_assets_are_immutable_and_come_as_they_were_compressed_at_the_build(app: Server) -> None:
    plain = await app.client.get("/assets/index-Ab12_x-9.js", headers={"Accept-Encoding": "identity"})
    packed = await app.client.get("/assets/index-Ab12_x-9.js", headers={"Accept-Encoding": "gzip, deflate"})
    assert plain.content == packed.content == SCRIPT
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-length"] == str(len(gzip.compress(SCRIPT)))
    for answer in (plain, packed):
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith("text/javascript")
        assert answer.headers["vary"] == "Accept-Encoding"


@pytest.mark.covers("WB-46-return")
async def test_a_person_who_is_not_signed_in_is_sent_to_the_sign_in_and_back(app: Server) -> None:
    async with httpx2.AsyncClient(base_url=app.serving.address) as nobody:
        answer = await nobody.get("/inbox/mine/h1?tab=data", headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (
            303, "/sign-in?next=/inbox/mine/h1%3Ftab%3Ddata"
        )  # fmt: skip
        assert (await nobody.get("/assets/index-c0ffee.css")).status_code == 200


@pytest.mark.covers("WB-63-pages")
@pytest.mark.parametrize("path", ["/", "/runs", "/flows", "/plain/", "/plain/runs"])
async def test_without_the_app_plain_pages_answer_at_its_addresses_and_say_so(
    server: Server, path: str
) -> None:
    answer = await get(server, path)
    assert answer.status_code == 200
    assert "The web app is not built here" in answer.text


@pytest.mark.covers("WB-63-pages")
async def test_without_the_app_its_addresses_of_a_hold_lead_to_the_plain_page(server: Server) -> None:
    assert (await get(server, "/inbox/mine/h1")).headers["location"] == "/holds/h1"
    assert (await get(server, "/inbox/done")).headers["location"] == "/holds?view=done"
    assert (await get(server, "/plain/inbox/mine/h1")).headers["location"] == "/plain/holds/h1"


@pytest.mark.covers("WB-3")
async def test_the_plain_page_of_a_run_reads_its_drawing_and_its_events(app: Server) -> None:
    flow = Flow("asked", effect="pure")
    flow.hold("ask", prompt="Sure?", options=["yes", "no"])
    run = (await flow.run({}, on=app.hf)).run_id
    page = (await get(app, f"/plain/runs/{run}")).text
    drawing = re.findall(rf'src="(/plain/runs/{run}/drawing\.svg\?at=\d+)"', page)
    assert (await get(app, drawing[0])).headers["content-type"] == "image/svg+xml"
    assert f'data-live="/v1/runs/{run}/stream"' in page
