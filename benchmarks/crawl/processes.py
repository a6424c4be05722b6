"""Processes as /proc shows them: who descends from whom, what each is, how much memory each has. Linux only."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process. `pss` shares out pages that several processes have in common, so it can be summed."""

    pid: int
    name: str
    rss: int  # bytes
    pss: int  # bytes


def descendants(ancestor: int) -> list[int]:
    """All processes below `ancestor` at this moment, without itself."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    found: list[int] = []
    queue = [ancestor]
    while queue:
        below = children.pop(queue.pop(), [])
        found += below
        queue += below
    return found


def memory_below(ancestor: int) -> list[Memory]:
    """The memory of each descendant; one that ends meanwhile is left out."""
    return [memory for pid in descendants(ancestor) if (memory := _memory(pid)) is not None]


def _parents() -> Iterator[tuple[int, int]]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_bytes()
            except OSError:
                continue
            # The second field is the program's name in brackets, and may hold blanks and brackets itself.
            yield int(entry.name), int(stat.rpartition(b")")[2].split()[1])


def _memory(pid: int) -> Memory | None:
    folder = _PROC / str(pid)
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()[1:]
        name = _name((folder / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return None
    sizes = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines}
    return Memory(pid, name, sizes["Rss:"], sizes["Pss:"])


def _name(arguments: list[bytes]) -> str:
    """The module of `python -m MODULE`, or else the program."""
    words = [argument.decode(errors="replace") for argument in arguments]
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    return Path(words[0]).name
