"""Every setting: name, type, default and meaning, in one table. Frozen values, a class for each section of config.cfg.

Pure: reading the file and the command line is in config.py.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from common.bundle import FORMATS
from common.expressions import Expressions
from common.urls import MAX_URL_LENGTH

MEMORY_FOLDER = ".mem"
TRAVERSALS = ("bfs", "dfs", "random", "priority")  # on disk by position: new ones come at the end
SCOPES = ("free", "domain", "site", "host", "path")
ADAPTIVE = "adaptive"  # a period


@dataclass(frozen=True, slots=True)
class Key:
    """How one setting is written, checked and explained."""

    name: str  # in the file; on the command line in lower case with dashes
    help: str
    expected: str  # completes the sentence "expected …"
    parse: Callable[[str], Any]
    inherits: bool = False  # when empty, the [url_Server] key of that name counts
    is_secret: bool = False  # its value is in no message


def _text(expected: str = "text") -> tuple[str, Callable[[str], str]]:
    return _matching(expected, r"[^\x00-\x1f\x7f]*")  # an indented next line would become part of the value


def _matching(expected: str, pattern: str) -> tuple[str, Callable[[str], str]]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError
        return text

    return expected, parse


def _port_range() -> tuple[str, Callable[[str], str]]:
    def parse(text: str) -> str:
        if text:
            low, high = (_within(int(port), 1, 65535) for port in text.split("-"))
            _within(high, low, 65535)
        return text

    return "two port numbers with - between, the lower one first, or nothing", parse


def _secret() -> tuple[str, Callable[[str], str]]:
    return _matching("a shared secret of printable ASCII characters without blanks", r"[!-~]*")


_SECRET = _secret()


def _switch() -> tuple[str, Callable[[str], bool]]:
    values = {"1": True, "0": False, "yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
    return "1 or 0", lambda text: values[text.lower()]


def _whole(low: int, high: int) -> tuple[str, Callable[[str], int]]:
    return f"a whole number from {low} to {high}", lambda text: _within(int(text), low, high)


def _seconds(low: float, high: float) -> tuple[str, Callable[[str], float]]:
    return f"a number from {low:g} to {high:g}", lambda text: _within(float(text), low, high)


def _period() -> tuple[str, Callable[[str], float | str]]:
    expected, parse = _seconds(0, 87_600)
    return f"{expected}, or {ADAPTIVE}", lambda text: ADAPTIVE if text.lower() == ADAPTIVE else parse(text)


def _choice(*words: str) -> tuple[str, Callable[[str], str]]:
    return "one of " + ", ".join(word or "nothing" for word in words), lambda text: words[words.index(text)]


def _urls() -> tuple[str, Callable[[str], tuple[str, ...]]]:
    return "URLs separated by ;", lambda text: tuple(filter(None, map(str.strip, re.split(r"[;\n]", text))))


def _expressions() -> tuple[str, Callable[[str], tuple[str, ...]]]:
    def parse(text: str) -> tuple[str, ...]:
        patterns = tuple(filter(None, map(str.strip, text.split("\n"))))
        Expressions(patterns)  # a mistake is told here, with its place in the file
        return patterns

    return "regular expressions (RE2), one a line", parse


def _within(value: Any, low: float, high: float) -> Any:
    if not low <= value <= high:
        raise ValueError
    return value


def _key(
    name: str, default: Any, kind: tuple[str, Callable[[str], Any]], help: str, inherits: bool = False
) -> Any:
    expected, parse = kind
    return field(default=default, metadata={"key": Key(name, help, expected, parse, inherits, kind is _SECRET)})


@dataclass(frozen=True, slots=True)
class UrlServerSettings:
    """[url_Server]: the coordinator, and what its clients must follow."""

    # fmt: off
    ip: str = _key("ip", "127.0.0.1", _text("an address of this machine"),
        "Address to listen on. Any other than loopback needs a token.")
    server_port: int = _key("server_port", 50001, _whole(0, 65535),
        "Port of the SOAP service; 0 takes a free one and prints it.")
    start_urls: tuple[str, ...] = _key("start_Urls", (), _urls(),
        "Where the crawl begins: URLs separated by semicolons. Known ones are not crawled again.")
    urls_to_crawl: int = _key("urls_to_crawl", 300, _whole(1, 10_000),
        "Most URLs in one job.")
    robots_control: bool = _key("robots_control", True, _switch(),
        "1 honours robots.txt. Set 0 only for sites of your own.")
    page_directives: bool = _key("page_directives", True, _switch(),
        "1 honours what pages say to robots (meta robots, X-Robots-Tag): noindex, noarchive, nofollow.")
    rel_nofollow: bool = _key("rel_nofollow", False, _switch(),
        "1 does not follow links with rel=nofollow; 0 follows them.")
    page_parse: bool = _key("page_parse", True, _switch(),
        "1 also mines description, keywords and text into data.xml; 0 keeps the HTML and its metadata only.")
    sitemap: bool = _key("sitemap", False, _switch(),
        "1 stays on the hosts of the start URLs, each with and without www. (the same as scope = site); 0 roams.")
    sitemaps: bool = _key("sitemaps", False, _switch(),
        "1 also reads the sitemaps that robots.txt names, and /sitemap.xml: the pages that they list are found, and "
        "those that they say have changed are visited again sooner. Not the same as sitemap.")
    document_save: bool = _key("document_save", True, _switch(),
        "1 also keeps documents that are not HTML (pdf, images, ...), and asks for those that a page shows or runs.")
    scope: str = _key("scope", "", _choice("", *SCOPES),
        "What belongs to the crawl: free (everything), domain (the domains of the start URLs), site (their hosts, "
        "with and without www.), host (their hosts only), path (what is below their folders). Empty: free, or site "
        "with sitemap = 1.")
    accept: tuple[str, ...] = _key("accept", (), _expressions(),
        "Only URLs in which one of these is found belong to the crawl, and start URLs. Empty: all.")
    reject: tuple[str, ...] = _key("reject", (), _expressions(),
        "URLs in which one of these is found do not belong to the crawl. Stronger than accept.")
    delay: float = _key("delay", 1.0, _seconds(0, 86_400),
        "Seconds between two requests to one host, for all clients together. robots.txt can lengthen it.")
    connections_per_host: int = _key("connections_per_host", 1, _whole(1, 256),
        "Requests that may run on one host at once, for all clients together.")
    agent_name: str = _key("agent_name", "pavouk",
        _matching("a word of letters, digits, _ and -", r"[A-Za-z0-9_-]{1,100}"),
        "Name in the User-Agent, and the name that robots.txt rules are looked up for.")
    contact: str = _key("contact", "",
        _matching("a URL or a mail address, in ASCII without blanks and brackets", r"[!-'*-~]{0,200}"),
        "Who to ask about the crawler: a URL or mail address put into the User-Agent (a mail address also into From). "
        "Without one a crawl of hosts that may not be private warns.")
    allow_private: bool = _key("allow_private", False, _switch(),
        "1 lets clients fetch from loopback, private and link-local addresses. The private addresses that a start host "
        "has when it is named are allowed anyway, for this host.")
    drop_index_names: bool = _key("drop_index_names", True, _switch(),
        "1 treats default index names such as /index.html, /Default.aspx and /index.jsp, in any case of letters, as "
        "the same page as /. A crawl goes on as it began, whatever is said here later.")
    traversal: str = _key("traversal", "bfs", _choice(*TRAVERSALS),
        "Which URL of a host is taken first: bfs (the nearest to a start URL), dfs (the one found last), random (each "
        "is put at the front or at the back of its host's queue), priority (the one with the highest score). Hosts "
        "take turns in any case.")
    max_pages: int = _key("max_pages", 0, _whole(0, 10**12),
        "Stop after so many stored pages; 0 for no limit.")
    max_pages_per_host: int = _key("max_pages_per_host", 0, _whole(0, 10**9),
        "Store at most so many pages of one host; what it has queued beyond that stays queued. 0 for no limit.")
    max_bytes: int = _key("max_bytes", 0, _whole(0, 10**18),
        "Stop when the bundles have so many bytes; what is under way then still comes in. 0 for no limit.")
    max_time: float = _key("max_time", 0.0, _seconds(0, 10**9),
        "Stop when the crawl has been running for so many seconds, over all restarts; time in which it was stopped, "
        "paused or finished does not count. 0 for no limit.")
    period: float | str = _key("period", 0.0, _period(),
        "Hours after which a stored page is visited again; 0: never. adaptive: each page has its own period, which a "
        "visit halves if the page has changed and doubles if it has not.")
    period_min: float = _key("period_min", 1.0, _seconds(0.0001, 87_600),
        "Shortest period in hours with period = adaptive.")
    period_max: float = _key("period_max", 720.0, _seconds(0.0001, 87_600),
        "Longest period in hours with period = adaptive; also that of pages that are gone or moved.")
    max_depth: int = _key("max_depth", 0, _whole(0, 65_535),
        "Follow at most so many links from a start URL; 0 for no limit.")
    max_url_length: int = _key("max_url_length", MAX_URL_LENGTH, _whole(20, MAX_URL_LENGTH),
        "Longer URLs, in characters, are not crawled.")
    max_path_depth: int = _key("max_path_depth", 30, _whole(0, MAX_URL_LENGTH),
        "URLs with more segments in their path (/a/b/c.html has 3) are not crawled; 0 for no limit.")
    max_path_repeats: int = _key("max_path_repeats", 3, _whole(0, MAX_URL_LENGTH),
        "URLs in whose path the same segments stand more often in a row (/a/b/a/b: twice) are not crawled; 0 for no "
        "limit.")
    max_query_parameters: int = _key("max_query_parameters", 50, _whole(0, MAX_URL_LENGTH),
        "URLs with more parameters in their query are not crawled; 0 for no limit.")
    lease_seconds: float = _key("lease_seconds", 300.0, _seconds(1, 86_400),
        "A client that is silent for so many seconds loses its job; the URLs are queued again.")
    retry_wait: float = _key("retry_wait", 30.0, _seconds(0.01, 86_400),
        "Seconds before a URL that failed for a passing reason is tried again; later tries wait longer.")
    report_seconds: float = _key("report_seconds", 30.0, _seconds(0.1, 86_400),
        "Clients upload and report what they have after so many seconds, also when the job is not finished.")
    durability: str = _key("durability", "full", _choice("full", "normal"),
        "When an answer is sent: full, after all that it says is on disk (survives a power loss); normal, once the "
        "system has it, and on disk within a second (survives a crash of the program, not of the machine).")
    bundle_format: str = _key("bundle_format", "tar.bz2", _choice(*FORMATS),
        "Container of the bundles; tar.zst costs far less processor time.")
    max_body_bytes: int = _key("max_body_bytes", 20_000_000, _whole(1_000, 2_000_000_000),
        "A longer body (received or unpacked) is not kept.")
    max_header_bytes: int = _key("max_header_bytes", 256_000, _whole(1_000, 10_000_000),
        "An answer with longer headers is refused.")
    max_redirects: int = _key("max_redirects", 10, _whole(0, 100),
        "Redirects in a row before a URL is given up.")
    connect_timeout: float = _key("connect_timeout", 10.0, _seconds(0.1, 600),
        "Seconds to wait for a connection.")
    idle_timeout: float = _key("idle_timeout", 20.0, _seconds(0.1, 600),
        "Seconds without a byte before a fetch is given up.")
    fetch_timeout: float = _key("fetch_timeout", 120.0, _seconds(0.1, 86_400),
        "Seconds for a fetch in all.")
    max_crawl_delay: float = _key("max_crawl_delay", 60.0, _seconds(0, 86_400),
        "Crawl-delay of robots.txt is obeyed up to so many seconds.")
    verify_tls: bool = _key("verify_tls", True, _switch(),
        "1 fetches from https sites only with a valid certificate. 0 takes any: what is stored may be anybody's.")
    server_threads: int = _key("server_threads", 16, _whole(1, 256),
        "Clients served at the same time; more wait in line.")
    max_message_bytes: int = _key("max_message_bytes", 32_000_000, _whole(100_000, 1_000_000_000),
        "A longer SOAP message is refused.")
    token: str = _key("token", "", _SECRET,
        "Secret that clients must show. Without one the server listens on loopback only.")
    token_file: str = _key("token_file", "", _text("a file"),
        "File that holds the token, relative to the work folder; instead of token.")
    tls_cert: str = _key("tls_cert", "", _text("a PEM file"),
        "Certificate chain (PEM) for TLS; empty for none.")
    tls_key: str = _key("tls_key", "", _text("a PEM file"),
        "Private key (PEM) that belongs to tls_cert.")
    log_level: str = _key("log_level", "INFO", _choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "How much the log tells.")
    # fmt: on

    @property
    def effective_scope(self) -> str:
        return self.scope or ("site" if self.sitemap else "free")


@dataclass(frozen=True, slots=True)
class FtpServerSettings:
    """[ftp_Server]: the receiver of the harvest."""

    # fmt: off
    ip: str = _key("ip", "127.0.0.1", _text("an address of this machine"),
        "Address to listen on, and where clients are sent. Any other than loopback needs a token.")
    ftp_port: int = _key("ftp_port", 50003, _whole(0, 65535),
        "Port of the FTP service; 0 takes a free one and prints it.")
    directory: str = _key("directory", "Pages", _matching("a folder", r"[^\x00-\x1f\x7f]+"),
        "Where bundles are kept, relative to the work folder.")
    max_connections: int = _key("max_connections", 25, _whole(1, 10_000),
        "FTP sessions in all. Connections that have not logged in do not count.")
    max_connections_per_address: int = _key("max_connections_per_address", 4, _whole(1, 10_000),
        "FTP sessions from one address.")
    max_bundle_bytes: int = _key("max_bundle_bytes", 4_000_000_000, _whole(1_000_000, 10**12),
        "A longer upload is cut off and refused.")
    passive_ports: str = _key("passive_ports", "", _port_range(),
        "Range of ports for data connections, such as 50010-50050, when a firewall must know them; empty for any.")
    token: str = _key("token", "", _SECRET,
        "Secret shared with the URL server; empty takes the one of [url_Server].", inherits=True)
    user: str = _key("user", "", _matching("a name of printable ASCII characters without blanks", r"[!-~]*"),
        "Account that workers upload with; empty takes pavouk. For an FTP server that is not ftpServer.")
    password: str = _key("password", "", _secret(),
        "Password of that account; empty takes the one that follows from the token.")
    token_file: str = _key("token_file", "", _text("a file"),
        "File that holds the token, relative to the work folder; instead of token.")
    tls_cert: str = _key("tls_cert", "", _text("a PEM file"),
        "Certificate chain (PEM) for TLS; empty takes the one of [url_Server].", inherits=True)
    tls_key: str = _key("tls_key", "", _text("a PEM file"),
        "Private key (PEM) that belongs to tls_cert.", inherits=True)
    log_level: str = _key("log_level", "INFO", _choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "How much the log tells.")
    # fmt: on


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """[settings]: a worker. Everything else it is told by the URL server."""

    # fmt: off
    server_ip: str = _key("server_ip", "127.0.0.1", _text("a host name or address"),
        "Where the URL server is.")
    server_port: int = _key("server_port", 50001, _whole(1, 65535),
        "Port of the URL server.")
    number_of_threads: int = _key("number_of_threads", 10, _whole(1, 1000),
        "Pairs of threads: so many download, and as many mine.")
    processes: int = _key("processes", 0, _whole(0, 256),
        "Processes, each with its pairs of threads; 0 takes one for each core.")
    name: str = _key("name", "",
        _matching("at most 100 letters, digits or . _ : @ + -", r"[A-Za-z0-9._:@+-]{0,100}"),
        "How this worker is called at the server; empty makes one up and keeps it in the work folder.")
    token: str = _key("token", "", _SECRET,
        "The secret of the URL server; empty takes the one of [url_Server].", inherits=True)
    token_file: str = _key("token_file", "", _text("a file"),
        "File that holds the token, relative to the work folder; instead of token.")
    tls: bool = _key("tls", False, _switch(),
        "1 talks TLS to the URL server.")
    tls_ca: str = _key("tls_ca", "", _text("a PEM file"),
        "Certificate (PEM) to trust for our own servers; empty trusts what the system trusts.")
    max_wait: float = _key("max_wait", 60.0, _seconds(0.1, 3600),
        "Longest wait in seconds between two tries when one of our servers is away.")
    filters: str = _key("filters", "", _text("a folder"),
        "Folder with filters, which say of each page whether it is kept; empty for none.")
    filter_seconds: float = _key("filter_seconds", 5.0, _seconds(0.1, 60),
        "Seconds that a filter has for a page. One that takes longer is ended, and the page is kept.")
    log_level: str = _key("log_level", "INFO", _choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "How much the log tells.")
    # fmt: on


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration, and the work folder it belongs to."""

    folder: Path = Path()
    url_server: UrlServerSettings = UrlServerSettings()
    ftp_server: FtpServerSettings = FtpServerSettings()
    client: ClientSettings = ClientSettings()

    @property
    def memory(self) -> Path:
        return self.folder / MEMORY_FOLDER

    @property
    def pages(self) -> Path:
        return self.folder / self.ftp_server.directory


SECTIONS: Mapping[str, tuple[str, type]] = {
    "url_Server": ("url_server", UrlServerSettings),
    "ftp_Server": ("ftp_server", FtpServerSettings),
    "settings": ("client", ClientSettings),
}


def keys_of(section_class: type) -> dict[str, Key]:
    """The keys of a section by field name, in order."""
    return {item.name: item.metadata["key"] for item in fields(section_class)}


def default_of(section_class: type, field_name: str) -> Any:
    """The default of one key."""
    value = next(item.default for item in fields(section_class) if item.name == field_name)
    assert value is not MISSING
    return value


def written(value: Any) -> str:
    """A value as it is written in config.cfg."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return ";".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
