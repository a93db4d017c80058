"""Puts docs/openapi.yaml into the server's sources, so that the binary alone can give it out.

    python3 Tests/Contract/embed.py

A test holds the two against each other.
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "Sources/Server/REST/OpenAPIDocument"
PARTS = [
    ("Paths", "paths:\n"),
    ("Buckets", "  /1/{app}/{bucket}/index:\n"),
    ("Accounts", "  # Accounts whose passwords are sent.\n"),
    ("Keys", "  # Accounts whose passwords stay with the client.\n"),
    ("Bundles", "  /1/{app}/auth/bundle:\n"),
    ("Partners", "  # Users of partners.\n"),
    ("Components", "components:\n"),
    ("Answers", "    # Of built-in accounts.\n"),
    ("Schemas", "  schemas:\n"),
    ("Shapes", "    WideChange:\n"),
]


def main():
    text = (ROOT / "docs/openapi.yaml").read_text()
    assert '"""#' not in text
    pieces, rest = [], text
    for name, start in reversed(PARTS):
        head, mark, tail = rest.rpartition("\n" + start)
        assert mark, start
        pieces.insert(0, (name, start + tail))
        rest = head + "\n"
    pieces.insert(0, ("Head", rest))
    for name, piece in pieces:
        swift = (
            "// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.\n\n"
            "extension OpenAPIDocument {\n"
            f'    static let {name.lower()}: String = #"""\n'
            + "".join(f"        {line}\n" if line else "\n" for line in piece.rstrip("\n").split("\n"))
            + ("\n" if piece.endswith("\n\n") else "")
            + '        """#\n}\n'
        )
        TARGET.with_name(f"OpenAPIDocument+{name}.swift").write_text(swift)


main()
