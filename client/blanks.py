"""What nobody sees at the edge of a line, a word or an address, and its writer did not mean: white space of all kinds,
characters without width, marks of direction, control characters. Pure.
"""

_RANGES = (
    (0x00, 0x20), (0x7F, 0xA0), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x1680, 0x1680), (0x180E, 0x180E),
    (0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x206F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
    (0xDCA0, 0xDCA0),  # the no-break space of Latin-1 where UTF-8 was expected, decoded with `surrogateescape`
)  # fmt: skip
BLANKS = "".join(chr(code) for first, last in _RANGES for code in range(first, last + 1))


def trimmed(text: str) -> str:
    """`text` without what nobody sees at its edges. What is inside stays."""
    text = text.strip()  # nearly always all there is, and quicker
    return text if text.isascii() and text.isprintable() else text.strip(BLANKS)
