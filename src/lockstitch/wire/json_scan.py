"""When a JSON object that arrives in pieces is complete, without parsing it again for every piece."""

import re

_INTERESTING = re.compile(r'["{}\[\]]|[^\s"{}\[\]]+')
_STRING_REST = re.compile(r'[^"\\]+|\\.|"', re.DOTALL)


class ObjectScan:
    """Follows the brackets of one JSON object. Linear: each character is looked at once.

    Balance is all it checks; whether the text is valid JSON is for a parser to say, once, at the end.
    """

    __slots__ = ("_broken", "_depth", "_escaped", "_in_string", "_started", "complete", "scanned")

    def __init__(self) -> None:
        self.complete = False
        """The text so far is one object and nothing but white space around it."""
        self.scanned = 0
        """Characters looked at, so that a test can count the work."""
        self._depth = 0
        self._started = False
        self._in_string = False
        self._escaped = False
        self._broken = False

    def feed(self, piece: str) -> None:
        self.scanned += len(piece)
        position = 0
        end = len(piece)
        while position < end and not self._broken:
            if self._in_string:
                position = self._string(piece, position)
            else:
                match = _INTERESTING.search(piece, position)
                if match is None:
                    return
                position = match.end()
                self._mark(match[0])

    def _string(self, piece: str, position: int) -> int:
        if self._escaped:
            self._escaped = False
            return position + 1
        match = _STRING_REST.match(piece, position)
        if match is None:  # a backslash at the end of the piece: what it escapes comes with the next
            self._escaped = True
            return len(piece)
        if match[0] == '"':
            self._in_string = False
        return match.end()

    def _mark(self, mark: str) -> None:
        if self.complete or (not self._started and mark != "{"):
            self.complete = False
            self._broken = True
        elif mark == '"':
            self._in_string = True
        elif mark in "{[":
            self._started = True
            self._depth += 1
        elif mark in "}]":
            self._depth -= 1
            self.complete = self._depth == 0
