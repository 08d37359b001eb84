"""Names for the strings that identify things, so that one cannot be passed for another."""

from typing import NewType

SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)
"""A tool call's id as its provider or a mint gave it: not empty, but unique only within one response."""
