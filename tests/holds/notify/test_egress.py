"""Where messages may go: the traps of addresses, one by one."""

from __future__ import annotations

import socket
import ssl
from ipaddress import ip_address

import pytest

from holdfast.errors import EgressError
from holdfast.holds.egress import Egress, address_of, is_outside, target_of
from holdfast.holds.notify import http_post
from holdfast.holds.notify.http_post import post
from tests.holds.notify.servers import Certificate, http_server

pytestmark = [pytest.mark.anyio, pytest.mark.covers("HOLD-NOTE-08", "HOLD-SEC-06")]

INSIDE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",  # shared by a provider's customers
    "100.127.255.255",
    "127.0.0.1",
    "127.9.9.9",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",  # is_global on Python 3.11
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",  # is_global on Python 3.11
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:10.0.0.1",
    "64:ff9b::a9fe:a9fe",  # is_global on Python 3.11, and reaches 169.254.169.254
    "64:ff9b:1::a00:1",
    "2002:a9fe:a9fe::1",  # the same by 6to4
    "2002:7f00:1::1",
    "2001:0:a9fe:a9fe::1",
    "2001:0:808:808:0:0:f5ff:fffe",  # Teredo: its client is 10.0.0.1
    "2a00:1450::5efe:a00:1",  # ISATAP: 10.0.0.1
    "2001:db8::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",  # is_global on Python 3.11
    "ff02::1",
    "100::1",
    "5f00::1",
]

OUTSIDE = [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "2a00:1450:4001:81b::200e",
    "64:ff9b::808:808",
    "2002:808:808::1",
]

BAD_LOOKS = [
    "http://hooks.example.com/x",
    "ftp://hooks.example.com/x",
    "file:///etc/passwd",
    "gopher://hooks.example.com",
    "https://hooks.example.com:22/",
    "https://hooks.example.com:80/",
    "https://hooks.example.com:99999/",
    "https://user:pass@hooks.example.com/",
    "https://hooks.example.com@10.0.0.1/",
    "https:///nothing",
    "https://[fe80::1%25eth0]/",
    "https://hooks.example.com\\@10.0.0.1/",
    "https://hooks.example.com/\r\nHost: other",
    "https://hooks.example.com/ x",
    "https://\uff45xample.com/",
    "https://metadata.google.internal/computeMetadata/v1/",
    "https://metadata.google.internal./computeMetadata/v1/",
    "https://[::1/",
    "//hooks.example.com/x",
    "hooks.example.com",
    "",
    "https://hooks.example.com/" + "a" * 3000,
]


@pytest.mark.parametrize("address", INSIDE)
def test_egress_keeps_an_address_in_when_it_reaches_the_inside(address):
    assert not is_outside(ip_address(address))


@pytest.mark.parametrize("address", OUTSIDE)
def test_egress_lets_an_address_pass_when_it_is_public(address):
    assert is_outside(ip_address(address))


@pytest.mark.parametrize("url", BAD_LOOKS)
def test_egress_refuses_a_url_by_its_looks(url):
    with pytest.raises(EgressError) as refused:
        target_of(url, Egress())
    assert "pass@" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://h.example.com/a?b=c", "https://h.example.com:8443/a?b=c"])
def test_egress_takes_https_on_its_two_ports(url):
    target = target_of(url, Egress())
    assert (target.host, target.path, target.tls) == ("h.example.com", "/a?b=c", True)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost"])
async def test_egress_judges_what_a_name_resolves_to_when_it_is_an_odd_spelling(host):
    with pytest.raises((EgressError, socket.gaierror)):
        await address_of(target_of(f"https://{host}/", Egress()), Egress())


async def test_egress_refuses_a_name_when_only_one_of_its_addresses_is_inside():
    async def mixed(host, port):
        return ["8.8.8.8", "10.0.0.1"]

    with pytest.raises(EgressError, match=r"10\.0\.0\.1"):
        await address_of(target_of("https://h.example.com/", Egress()), Egress(), mixed)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "::ffff:169.254.169.254", "2001:0:a9fe:a9fe::1", "fd00:ec2::254"]
)
async def test_egress_refuses_the_metadata_address_when_its_host_is_allowed(address):
    async def metadata(host, port):
        return [address]

    egress = Egress(allow=("intranet",))
    with pytest.raises(EgressError):
        await address_of(target_of("http://intranet/", egress), egress, metadata)


async def test_post_resolves_once_and_connects_to_that_address_when_the_name_would_change():
    asked = []

    async def rebinding(host, port):
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.255.255.1"]

    async with http_server() as server:
        egress = Egress(allow=("hooks.test",), timeout=5)
        reply = await post(f"http://hooks.test:{server.port}/x", b"{}", {}, egress=egress, resolve=rebinding)
    assert (reply.status, asked) == (200, ["hooks.test"])
    assert server.seen[0].headers["host"] == f"hooks.test:{server.port}"


async def test_post_follows_no_redirect():
    async with http_server() as server:
        server.says(302, headers={"location": f"http://127.0.0.1:{server.port}/secret"})
        reply = await post(server.url, b"{}", {}, egress=server.egress)
    assert reply.status == 302
    assert len(server.seen) == 1


async def test_post_uses_no_proxy_or_credential_of_the_environment(monkeypatch, tmp_path):
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with http_server() as server:
        assert (await post(server.url, b"{}", {}, egress=server.egress)).status == 200
    assert "authorization" not in server.seen[0].headers


async def test_post_gives_up_when_no_answer_comes_in_time():
    async with http_server() as server:
        server.hangs()
        egress = Egress(allow=server.egress.allow, timeout=0.2)
        with pytest.raises(TimeoutError):
            await post(server.url, b"{}", {}, egress=egress)


async def test_post_keeps_only_the_beginning_of_a_long_answer():
    async with http_server() as server:
        server.says(200, body="x" * 500_000)
        egress = Egress(allow=server.egress.allow, max_reply=1000)
        reply = await post(server.url, b"{}", {}, egress=egress)
    assert len(reply.body) == 1000


async def test_post_refuses_a_header_with_a_line_break():
    async with http_server() as server:
        with pytest.raises(ValueError, match="line break"):
            await post(server.url, b"{}", {"x-name": "a\r\nHost: b"}, egress=server.egress)


async def test_post_asks_for_the_name_on_the_judged_address_when_it_speaks_tls(monkeypatch):
    certificate = Certificate.of("hooks.test")
    monkeypatch.setattr(http_post, "_trusted", certificate.trusted)

    async def here(host, port):
        return ["127.0.0.1"]

    async with http_server(certificate) as server:
        egress = Egress(allow=("hooks.test", "other.test"), timeout=5)
        reply = await post(f"https://hooks.test:{server.port}/x", b"{}", {}, egress=egress, resolve=here)
        assert (reply.status, server.names) == (200, ["hooks.test"])
        with pytest.raises(ssl.SSLCertVerificationError):
            await post(f"https://other.test:{server.port}/x", b"{}", {}, egress=egress, resolve=here)
    assert len(server.seen) == 1


async def test_post_trusts_no_certificate_that_anybody_made():
    async with http_server(Certificate.of("127.0.0.1")) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            await post(server.url.replace("http:", "https:"), b"{}", {}, egress=server.egress)
    assert server.seen == []
