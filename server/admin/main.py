"""The command crawlAdmin: asks the running urlServer, or the work folder of a stopped one."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from common import VERSION, logs
from common.config import add_common_options, from_options
from common.console import show_all_characters
from common.ending import INTERRUPTED, raise_when_told
from common.errors import PavoukError
from common.files import keep_private
from common.handles import let_go
from common.seeds import Seeds, add_seeds_option, start_addresses
from common.settings import Settings
from common.wire import Outcome
from server.admin import show
from server.admin.audit import copied, examine
from server.admin.calling import NoCrawl, Verbs, has_crawl, opened_here, opened_store, running_server
from server.admin.operator import MAX_QUEUE_PIECE, Answer
from server.admin.repair import NOT_MENDED, repair
from server.frontier.frontier import FrontierError
from server.frontier.recovery import recover
from server.frontier.store import StoreError
from server.opening import STORE_FOLDER

MAX_BATCH_CHARACTERS = 64_000  # of URLs in one request
_MAX_LOOKED_UP = 1_000  # start URLs whose hosts are looked up, as they may be private
_Arguments = Callable[[argparse.Namespace], dict[str, Any]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run crawlAdmin; returns the exit code."""
    show_all_characters()
    try:
        raise_when_told()
        options = parser().parse_args(argv)
        keep_private()
        settings = from_options(options, ("url_server",))
        logs.set_up("WARNING")
        code: int = options.action(options, settings)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads our output has seen enough
        let_go(sys.stdout)
        return 1
    except (PavoukError, StoreError, FrontierError, OSError) as error:
        print(f"crawlAdmin: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="crawlAdmin", description="Asks and steers a crawl, running or stopped.")
    top.add_argument("--version", action="version", version=f"pavouk {VERSION}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, help: str, arguments: _Arguments = lambda options: {}) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.set_defaults(action=_ask, command=name, arguments=arguments)
        _add_general_options(made)
        return made

    command("status", "How the crawl stands.")
    explain = command("explain", "All that is known of a URL.", lambda given: {"url": given.url})
    explain.add_argument("url", metavar="URL")
    command("pause", "Hand out no more jobs; those that are out are finished.")
    command("resume", "Hand out jobs again.")
    for name, help in (("block", "Ask hosts nothing any more."), ("unblock", "Ask hosts again.")):
        command(name, help, lambda given: {"hosts": given.hosts}).add_argument("hosts", nargs="+", metavar="HOST")
    delay = command("delay", "Seconds between two requests to a host.", _delay)
    delay.add_argument("host", metavar="HOST")
    delay.add_argument("seconds", metavar="SECONDS|default", help="default: as the settings and robots.txt say.")
    priority = command("priority", "Let a host, or a URL of a host, be taken before others.", _priority)
    priority.add_argument("target", metavar="HOST|URL", help="What has a slash is a URL.")
    priority.add_argument("priority", metavar="N", help="0 as for other hosts; below 0 after them. The score of a URL.")
    add = command("add", "Further start URLs.")
    add.set_defaults(action=_add)
    add.add_argument("urls", nargs="*", metavar="URL")
    add_seeds_option(add)
    blacklist = command("blacklist", "URLs that were given up, and why.", _blacklist)
    _add_choice(blacklist)
    blacklist.add_argument("--limit", type=int, metavar="N", help="Show at most so many, up to 100,000. Default: 100.")
    queue = command("queue", "What is queued, in the order in which it is taken.")
    queue.set_defaults(action=_queue)
    queue.add_argument("--host", metavar="HOST", help="Only what this host has; without it host after host.")
    queue.add_argument("--limit", type=int, default=100, metavar="N", help="Show at most so many. Default: 100.")
    retry = command("retry", "Queue URLs again that were given up.", _retry)
    retry.add_argument("urls", nargs="*", metavar="URL")
    _add_choice(retry)
    retry.add_argument("--all", action="store_true", help="All of them.")
    audit = command("audit", "Prove that nothing was lost or taken twice; exit code 1 if there is a difference.")
    audit.set_defaults(action=_audit)
    audit.add_argument("--repair", action="store_true", help="Mend what can be mended; urlServer must be stopped.")
    audit.add_argument(
        "--believe", action="store_true",
        help="With --repair: take every page in Pages/ for what it claims. For a Pages/ that came from another crawl, "
        "when all who could upload were trusted.",
    )  # fmt: skip
    audit.add_argument("--quick", action="store_true", help="Do not read the bundles, only their manifests.")
    command("recover", "Go on with what is left of a damaged frontier.").set_defaults(action=_recover)
    return top


def _add_general_options(command: argparse.ArgumentParser) -> None:
    add_common_options(command)
    command.add_argument("--json", action="store_true", help="Answer with one JSON document.")
    group = command.add_argument_group("where urlServer listens (default: as it says itself, or as config.cfg says)")
    for name in ("ip", "server_port", "token", "token_file", "tls_cert"):
        option = "--" + name.replace("_", "-")
        group.add_argument(option, dest=f"url_server.{name}", metavar="VALUE")


def _add_choice(command: argparse.ArgumentParser) -> None:
    command.add_argument("--outcome", choices=list(Outcome), metavar="OUTCOME", help="Only those with this outcome.")
    command.add_argument("--host", metavar="HOST", help="Only those of this host.")


def _delay(options: argparse.Namespace) -> dict[str, Any]:
    if options.seconds == "default":
        return {"host": options.host, "seconds": None}
    try:
        return {"host": options.host, "seconds": float(options.seconds)}
    except ValueError as error:
        raise PavoukError(f"{options.seconds!r} is no number of seconds, and not 'default'") from error


def _priority(options: argparse.Namespace) -> dict[str, Any]:
    try:
        return {"target": options.target, "priority": int(options.priority)}
    except ValueError as error:
        raise PavoukError(f"{options.priority!r} is no whole number") from error


def _blacklist(options: argparse.Namespace) -> dict[str, Any]:
    return _given(outcome=options.outcome, host=options.host, limit=options.limit)


def _retry(options: argparse.Namespace) -> dict[str, Any]:
    return _given(urls=options.urls or None, outcome=options.outcome, host=options.host, all=options.all or None)


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _ask(options: argparse.Namespace, settings: Settings) -> int:
    arguments = options.arguments(options)
    with _asked(options, settings) as verbs:
        answer = verbs.run(options.command, arguments)
    _print(options, answer)
    return 0 if _found(options.command, answer) else 1


def _print(options: argparse.Namespace, answer: Answer) -> None:
    if options.json:
        print(json.dumps(answer, indent=1))
    else:
        print("\n".join(show.lines(options.command, answer)))


@contextmanager
def _asked(options: argparse.Namespace, settings: Settings) -> Iterator[Verbs]:
    """Who answers: the running urlServer, or else the frontier in the work folder."""
    server = running_server(settings, is_told(options))
    if server is not None:
        yield server
        return
    with opened_here(settings) as operator:
        print("urlServer is not running: read from disk", file=sys.stderr)
        yield operator


def _add(options: argparse.Namespace, settings: Settings) -> int:
    if not options.urls and not options.seeds:
        raise PavoukError("add what? Give URLs, or --seeds FILE")
    urls = start_addresses(options.urls)
    seeds = Seeds(options.seeds, lambda text: print(f"crawlAdmin: {text}", file=sys.stderr))
    answer = {"added": 0, "known": 0}
    with _asked(options, settings) as verbs:
        for batch in _batches(chain(urls, seeds)):
            look_up = sum(answer.values()) < _MAX_LOOKED_UP
            for name, number in verbs.run("add", {"urls": batch, "look_up": look_up}).items():
                answer[name] += number
    _print(options, answer)
    return 1 if seeds.bad else 0


def _queue(options: argparse.Namespace, settings: Settings) -> int:
    """Piece by piece, so that no answer is large, however much is asked for."""
    urls: list[Answer] = []
    left, rest, is_over = options.limit, "", False
    with _asked(options, settings) as verbs:
        while not is_over:
            piece = verbs.run("queue", _given(host=options.host, limit=min(left, MAX_QUEUE_PIECE), after=rest))
            left, rest = left - len(piece["urls"]), piece["rest"]
            is_over = not rest or left <= 0
            if options.json:
                urls += piece["urls"]
            else:
                print("".join(f"{line}\n" for line in show.lines("queue", {**piece, "is_last": is_over})), end="")
    if options.json:
        print(json.dumps({"number": piece["number"], "urls": urls}, indent=1))
    return 0 if piece["number"] else 1


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    """Each within what urlServer takes at the least (max_message_bytes)."""
    batch: list[str] = []
    size = 0
    for url in urls:
        if size + len(url) > MAX_BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
        batch.append(url)
        size += len(url) + 4  # quotes and comma
    if batch:
        yield batch


def _audit(options: argparse.Namespace, settings: Settings) -> int:
    if options.believe and not options.repair:
        raise PavoukError("--believe is about what --repair does: give both")
    server, most = running_server(settings, is_told(options)), settings.url_server.max_body_bytes
    if server is None:
        print("urlServer is not running: read from disk", file=sys.stderr)
        answer = _audited_here(options, settings)
    elif options.repair:
        raise PavoukError("urlServer is running: stop it first, then repair")
    else:
        with copied(server, settings) as (store, since):
            seen = examine(store, settings.pages, quick=options.quick, since=since, max_body_bytes=most)
        answer = seen.found.as_json()
    _print(options, answer)
    return 1 if is_different(answer) else 0


def is_different(answer: Answer) -> bool:
    """Whether there are differences; after a repair, still."""
    if "repaired" in answer:
        return bool(answer["left"]["number"] or NOT_MENDED in answer["repaired"]["kinds"])
    return bool(answer["differences"]["number"])


def _audited_here(options: argparse.Namespace, settings: Settings) -> Answer:
    store, most = opened_store(settings), settings.url_server.max_body_bytes
    try:
        seen = examine(store, settings.pages, quick=options.quick, max_body_bytes=most)
        answer = seen.found.as_json()
        if options.repair:
            answer["repaired"] = repair(store, settings, seen, options.quick, options.believe).as_json()
            left = examine(store, settings.pages, quick=True)  # what bundles contain has been looked at
            answer["left"] = left.found.differences.as_json()
    finally:
        store.close()
    return answer


def _recover(options: argparse.Namespace, settings: Settings) -> int:
    if running_server(settings, is_told(options)) is not None:
        raise PavoukError("urlServer is running: stop it first, then recover")
    if not has_crawl(settings):
        raise NoCrawl(f"there is no crawl in {settings.folder.absolute()}: say which work folder with --dir")
    done = recover(settings.memory / STORE_FOLDER, time.time())
    answer: Answer = {"damage": "", "kept": "", "missing": 0, "differences": 0}
    if done is not None:
        answer = {
            "damage": done.damage, "kept": str(done.kept), "missing": done.missing, "differences": done.differences,
        }  # fmt: skip
    _print(options, answer)
    return 1 if answer["differences"] else 0


def is_told(options: argparse.Namespace) -> bool:
    """Whether the command line says where the server is."""
    told = vars(options)
    return told["url_server.ip"] is not None or told["url_server.server_port"] is not None


def _found(command: str, answer: Answer) -> bool:
    """Whether the answer has what was asked for."""
    if command == "blacklist":
        return bool(answer["number"])
    return bool(answer["retried"]) if command == "retry" else True


if __name__ == "__main__":
    sys.exit(main())
