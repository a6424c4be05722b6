"""What a page says, read from its HTML.

    seen      the value, and how it is made of HTML: parsing and one walk
    reader    Reader.read, called by the datamine threads: here if that can do no harm, else in a process of its own
    lanes     which process reads a page, and for how long: what takes more than a moment goes out of the way
    process   these processes, seen from outside
    child     the same from inside: limits on time and memory, and one page after the other

The standard's algorithm takes the square of the input for pages that are built to do so, and gigabytes for others. A
call of the parser cannot be interrupted, and which pages these are can only be guessed (bounds.py), so a page that is
not certainly harmless is read where nothing else is lost when it goes wrong.
"""
