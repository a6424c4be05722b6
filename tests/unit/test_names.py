"""Page folders: safe on every file system, one per address, and back again."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common import names, urls

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_SAFE = re.compile(r"[A-Za-z0-9._\-=,&+@%$'();!~]+")

_ODD_SEGMENTS = """
. .. a A data.xml data.html DATA.X con CON.txt nul com1.a lpt9 a. a.. ~ ~1 a~1 ! !61 %7E index.html .git - č
"""
_LONG_SEGMENTS = ["x" * 199, "X" * 250, "y" * 450]
_segments = st.sampled_from(["", "a b", *_ODD_SEGMENTS.split(), *_LONG_SEGMENTS]) | st.text(
    "aAbB.!~%2fF ?=&*:|<>\"'č-_+", max_size=12
)
_ODD_HOSTS = """
a.cz a.cz:8080 [::1] [::1]:81 127.0.0.1 con a.cz:80 a.cz:443 a_b.cz nul.cz AUX a.cz. con. .. . ..a a..b data.xml
a~b a!b a+80 a+http - *
"""
_LONG_HOSTS = [".".join(["a" * 60] * 4), ".".join(["*" * 60] * 4) + ":8081"]
_hosts = st.sampled_from([*_ODD_HOSTS.split(), *_LONG_HOSTS])


@st.composite
def _references(draw: st.DrawFn) -> str:
    path = "/".join(draw(st.lists(_segments, max_size=5)))
    query = draw(st.just("") | st.builds("?{}".format, st.lists(_segments, max_size=3).map("/".join)))
    return f"{draw(st.sampled_from(['http', 'https']))}://{draw(_hosts)}/{path}{query}"


addresses = _references().map(urls.resolve).filter(bool)


def _parts(folder: str) -> list[str]:
    return folder.split("/")


def _case_folded(folder: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in _parts(folder))


@given(addresses)
@example("http://a.cz/?")
@example("http://a.cz/a/?b/c")
@example("http://a.cz/" + "A" * 1900)
@example("https://a.cz:80/")
@example("http://a.cz:443/")
def test_the_address_comes_back(address: str) -> None:
    assert names.address_of(names.page_folder(address)) == address


@given(addresses)
@example("http://a.cz/" + "%" * 1900)
def test_every_name_is_safe(address: str) -> None:
    for part in _parts(names.page_folder(address)):
        assert 0 < len(part) <= 255
        assert _SAFE.fullmatch(part)
        assert part not in (".", "..")
        assert part[-1] not in ". "


@given(addresses)
def test_no_name_is_a_device(address: str) -> None:
    assert not [part for part in _parts(names.page_folder(address)) if _RESERVED.fullmatch(part)]


@given(addresses, addresses)
@example("http://a.cz/A", "http://a.cz/a")
@example("http://a.cz/aB", "http://a.cz/Ab")
@example("http://a.cz/a~1", "http://a.cz/A")
@example("http://a.cz/a%7E1", "http://a.cz/A")
@example("http://a.cz/!41", "http://a.cz/A")
@example("http://a.cz/!", "http://a.cz/")
@example("http://a.cz:80/", "https://a.cz/")
@example("http://a.cz:443/", "https://a.cz:443/")
@example("http://a.cz/" + "a" * 200 + "/" + "b", "http://a.cz/" + "a" * 200 + "b")
def test_different_addresses_have_different_folders_whatever_the_case(one: str, other: str) -> None:
    same_folder = _case_folded(names.page_folder(one)) == _case_folded(names.page_folder(other))
    assert same_folder == (one == other)


@given(addresses)
@example("http://a.cz/x/data.xml")
@example("http://a.cz/x/DATA.html/y")
@example("http://a.cz/x/data.?a")
def test_no_folder_is_called_like_a_file_of_a_page(address: str) -> None:
    """A page's files are called data.something, so no other page may have a folder of such a name."""
    assert not [part for part in _parts(names.page_folder(address)) if part.lower().startswith("data.")]


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        ("https://example.org/a/Team.html?x=1", "example.org/a/Team.html!3fx=1~1"),
        ("http://127.0.0.1:8080/", "127.0.0.1+8080/!"),
        ("http://example.org/", "example.org+http/!"),
        ("https://example.org:8443/x/", "example.org+8443+https/x/!"),
        ("https://example.org//a", "example.org/!/a"),
        ("https://example.org/con", "example.org/!63on"),
        ("https://example.org/.htaccess", "example.org/!2ehtaccess"),
        ("https://example.org/a.", "example.org/a!2e"),
        ("https://[::1]/", "!5b!3a!3a1!5d/!"),
        ("https://aux.example.org/", "!61ux.example.org/!"),
        ("https://example.org./", "example.org!2e/!"),
        (f"https://{'a' * 220}/", f"{'a' * 200}~/~{'a' * 20}/!"),
    ],
)
def test_folders(address: str, folder: str) -> None:
    assert names.page_folder(address) == folder
    assert names.address_of(folder) == address


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.org", "example.org"),
        ("example.org:8080", "example.org+8080"),
        ("[::1]:8080", "!5b!3a!3a1!5d+8080"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)
def test_domain_names(host: str, domain: str) -> None:
    assert names.domain_name(host) == domain
    assert names.is_domain_name(domain)


@given(addresses)
def test_every_host_has_a_domain_name(address: str) -> None:
    assert names.is_domain_name(names.domain_name(urls.host_of(address)))


def test_long_hosts_get_short_names_that_differ() -> None:
    hosts = [".".join(["a" * 60] * 4) + suffix for suffix in (".cz", ".sk")]
    domains = {names.domain_name(host) for host in hosts}
    assert len(domains) == 2
    assert all(len(domain) <= names.MAX_DOMAIN_LENGTH + 9 and names.is_domain_name(domain) for domain in domains)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", "A.cz", "a cz", "a.cz\n", ".a", "a" * 200, "a+b", "a\\b"]
)
def test_what_is_no_domain_name(name: str) -> None:
    assert not names.is_domain_name(name)
