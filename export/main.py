"""The command crawlExport: writes the harvest of a work folder in other forms."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import VERSION, logs
from common.config import add_common_options, from_options
from common.console import show_all_characters
from common.ending import INTERRUPTED, raise_when_told
from common.errors import BundleError, PavoukError
from common.settings import Settings
from export import index
from export.accepted import LinkRules, configured, link_rules
from export.files import lay_out
from export.frontier import asked
from export.output import opened
from export.records import record_of
from export.stored import Harvest
from server.frontier.claims import Claims
from server.frontier.store import Store
from server.opening import LastPolicy, last_policy


def main(argv: Sequence[str] | None = None) -> int:
    """Run crawlExport; returns the exit code."""
    show_all_characters()
    try:
        raise_when_told()
        options = parser().parse_args(argv)
        settings = from_options(options, tokens=())
        logs.set_up("WARNING")
        with Harvest(settings.pages, settings.url_server.max_body_bytes) as harvest:
            known = _judged(harvest, settings)
            number = options.action(harvest, options, settings, known)
    except BrokenPipeError:  # who reads our output has seen enough
        return 1
    except (PavoukError, OSError) as error:
        print(f"crawlExport: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    left_out = list(dict.fromkeys(harvest.left_out))  # of a catalogue that is made for this time, some are told twice
    for text in (*harvest.remarks, *left_out):
        _say(text)
    ending = f" in {options.output}" if options.output else ""
    if left_out:
        ending += f"; {len(left_out)} times something was left out, as said above"
    _say(f"{number} pages{ending}")
    return 1 if left_out else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="crawlExport", description="Writes the pages of a crawl in other forms.")
    top.add_argument("--version", action="version", version=f"pavouk {VERSION}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    help = "A text file with a record for each page and its links."
    made = commands.add_parser("index", help=help, description=help)
    made.set_defaults(action=_index)
    _add_general_options(made)
    made.add_argument("--output", type=Path, metavar="FILE", help="Where to. Default: standard output.")
    made.add_argument(
        "--all-links", action="store_true", help="Also those that the rules of the crawl (scope, accept, …) exclude."
    )

    help = "A copy of each page as a file, in a folder for each host."
    made = commands.add_parser("files", help=help, description=help)
    made.set_defaults(action=_files)
    _add_general_options(made)
    made.add_argument("--output", type=Path, metavar="FOLDER", required=True, help="Where to; made if missing.")
    return top


def _add_general_options(command: argparse.ArgumentParser) -> None:
    add_common_options(command)
    command.add_argument(
        "--directory", dest="ftp_server.directory", metavar="VALUE",
        help="Where the bundles are, relative to the work folder. Default: Pages.",
    )  # fmt: skip


def _judged(harvest: Harvest, settings: Settings) -> LastPolicy | None:
    """Leave out pages that do not count, as the frontier tells; what else it tells."""

    def ask(store: Store) -> tuple[int, LastPolicy]:
        return harvest.judge_pages(Claims(store).judge), last_policy(store, settings)

    told = asked(settings, ask)
    if told is None:
        _say(f"no frontier in {settings.memory} tells which pages were reported: all count")
        return None
    if told[0]:
        _say(f"{told[0]} pages are not confirmed by a report, and left out; crawlAdmin audit tells more")
    return told[1]


def _say(text: str) -> None:
    print(f"crawlExport: {text}", file=sys.stderr)


def _index(harvest: Harvest, options: argparse.Namespace, settings: Settings, known: LastPolicy | None) -> int:
    if known is None and not options.all_links:
        _say(f"no frontier in {settings.memory}: all links are listed")
    rules = configured(settings) if known is None or options.all_links else link_rules(known)
    with opened(options.output) as file:
        return index.write(_records(harvest, rules), file)


def _records(harvest: Harvest, rules: LinkRules) -> Iterator[index.Record]:
    for domain in harvest.domains():
        for page in harvest.pages(domain):
            try:
                yield record_of(page, rules)
            except BundleError as error:
                harvest.left_out.append(f"{page.entry.meta.url}: {error}")


def _files(harvest: Harvest, options: argparse.Namespace, settings: Settings, known: LastPolicy | None) -> int:
    return lay_out(harvest, options.output)


if __name__ == "__main__":
    sys.exit(main())
