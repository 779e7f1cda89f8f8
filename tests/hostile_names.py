"""Names that break programs which take a file name for text, for one line, or for an option. Used by the tests of the program and of the package."""

import os

# Bytes, without the ending. A name of 255 bytes is the longest that Linux file systems take.
STEMS = [
    b"caf\xe9",                        # Latin-1
    b"\xff\xfe\x80",                   # bytes that begin no character
    b"\xed\xb2\x80",                   # a surrogate, which is not UTF-8
    b"\xc3",                           # a character cut short
    b"\xef\xbf\xbf",                   # U+FFFF: valid, though not a character
    b"\xef\xbb\xbfmark",               # a byte order mark
    b"two\nlines",
    b"error: forged\n",
    b"cr\rover",
    b"tab\there",
    b"it's \"quoted\"",
    b"`tick`",
    b"-rf",
    b"--json",
    b"back\\slash\\n\\xff",
    b"100%s%n%d",
    b"{0}{name}",
    b"{0..3}",
    b"$(id);*?[a]",
    b"comma,semi;colon",
    b" spaces ",
    b"<script>&amp;",
    b"\xf0\x9f\x94\xa5fire",           # an emoji
    b"e\xcc\x81",                      # a letter and an accent
    b"\xe2\x80\xaegnp.exe",            # U+202E: what follows is drawn from right to left
    b"%2e%2e",                         # look like a folder above
    b"\xe2\x80\xa5",                   # U+2025, two dots
    b"a..",
    b"\x1b[31mred\x1b[0m",             # ANSI colours
    b"\x1b]0;owned\x07",               # sets the title of the window
    b"\xc2\x9b31mred",                 # U+009B, the same as ESC [
    b"\x01\x7f",
    b"n" * 251,
]
CLASSES = [b"caf\xe9", b"\x1b[31mred\x1b[0m", b"two\nlines", b"-rf", b"\xf0\x9f\x94\xa5", b"%2e%2e", b"it's \"quoted\", 100%"]


def write_tree(root, content, ending=".png"):
    """A folder per class, each name in one of them; `content(number)` gives the bytes of a file. Returns the relative paths, sorted, as bytes."""
    root, paths = os.fsencode(root), []
    for number, stem in enumerate(STEMS):
        folder = CLASSES[number % len(CLASSES)]
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        path = os.path.join(folder, stem + ending.encode())
        with open(os.path.join(root, path), "wb") as file:
            file.write(content(number))
        paths.append(path)
    return sorted(paths)


# What a terminal must not be given, as it stands in decoded text: control characters but for the line feed, and characters that turn the direction.
UNSAFE = {chr(code) for code in [*range(0x20), *range(0x7f, 0xa0), 0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2066, 0x206a)]} - {"\n"}


def is_safe(text):
    """Whether a terminal shows the text as it is: no control character, and nothing that is not a character."""
    return not UNSAFE & set(text) and not any(0xd800 <= ord(c) < 0xe000 for c in text)
