"""The tables of manual/configuration.md, made from common/settings.py: `python -m tests.manual_tables` prints them."""

from common.settings import SECTIONS, default_of, keys_of, written


def configuration_tables() -> str:
    """A table for each section, every key with its default and meaning."""
    return "\n".join(_table(name, section) for name, (_, section) in SECTIONS.items())


def _table(name: str, section: type) -> str:
    rows = [
        f"| `{key.name}` | {written(default_of(section, field)) or 'empty'} | {key.help} |"
        for field, key in keys_of(section).items()
    ]
    head = [f"## [{name}]", "", "| key | default | meaning |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


if __name__ == "__main__":
    print(configuration_tables(), end="")
