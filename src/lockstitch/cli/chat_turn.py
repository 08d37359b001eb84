"""A turn told to a view: what becomes of each event of the runtime, and what goes on meanwhile."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, assert_never

from ..agent import events
from ..agent.api import Session
from ..history.ladder import told as in_words
from ..schema.blocks import Text
from ..schema.events import TurnEndReason
from ..schema.failures import Failure
from ..schema.usage import Usage
from . import chat_why
from .chat_items import CallLine, Item, NoteLine, Tone, UserText, call_line, one_line, result_lines, safe


class View(Protocol):
    """Shows a conversation. Nothing here may block for long."""

    interactive: bool
    """Whether somebody can type while the model works; else the next line waits for the end of the turn."""

    def show(self, item: Item) -> None:
        """One more item, for good."""
        ...

    def stream(self, text: str) -> None:
        """More of the answer, as it comes."""
        ...

    def settle(self) -> None:
        """What was streamed is final."""
        ...

    def withdraw(self) -> None:
        """What was streamed since the last ``settle`` does not count."""
        ...

    def changed(self) -> None:
        """The ``Status`` is another."""
        ...


OF_CHARS: Final = 60
"""Of the call that a result names."""
ENDINGS: Final[Mapping[TurnEndReason, str]] = {
    "length": "the answer is cut off (/continue goes on)",
    "budget": "a limit is reached",
    "approval": "nobody could be asked",
}
"""How a turn ended, where its reason is no word for people."""


@dataclass(slots=True)
class Status:
    """What goes on now; views read it."""

    activity: str = ""
    """Empty: nothing runs."""
    since: float = 0.0
    """``time.monotonic`` of the turn's start."""
    progress: str = ""
    """The last line of a running tool."""
    question: events.ApprovalNeeded | None = None
    streamed_chars: int = 0
    stopping: bool = False


class TurnTeller:
    """Tells the events of one session's turns, in order."""

    def __init__(self, session: Session, view: View, reasons: chat_why.Reasons) -> None:
        self.status = Status()
        self._session = session
        self._view = view
        self._reasons = reasons
        self._steered: list[str] = list(session.queued)
        self._seen = len(session.messages)
        self._failed: Failure | None = None
        """Of the last attempt, as long as it may be what ends the turn."""
        self._above: str | None = None
        """The call whose line was shown last."""
        self._calls: dict[str, CallLine] = {}

    def typed_ahead(self, text: str) -> None:
        """It waits in the queue; it is shown when it is said."""
        self._steered.append(text)

    def tell(self, event: events.UserEvent) -> None:
        """Show one event."""
        self._show_taken()
        self._tell_failed(event)
        if not isinstance(event, events.ToolFinished | events.ToolProgress):
            self._above = None
        match event:
            case events.TextDelta(text=text):
                self._activity("answering")
                self.status.streamed_chars += len(text)
                self._view.stream(text)
            case events.ReasoningDelta(text=text):
                self._activity("thinking")
                self.status.streamed_chars += len(text)
            case events.ToolStarted(call_id=call_id, name=name, arguments=arguments):
                self._tool_started(call_id, call_line(name, arguments))
            case events.ToolProgress(text=text):
                self.status.progress = one_line(text.rstrip("\n").rpartition("\n")[2])
            case events.ToolFinished():
                self._tool_finished(event)
            case events.ApprovalNeeded():
                self._activity("waiting for your answer")
            case events.AttemptDiscarded(failure=failure):
                self._view.withdraw()
                self._failed = failure
            case events.Retrying(retry=retry, delay_ms=delay_ms, code=code, of=of):
                what = "retry" if of == "answer" else "summary: retry"
                self._activity(f"{what} {retry} after {code}, in {delay_ms / 1000:.1f} s")
            case events.Repaired():
                self._view.settle()
                self._told(
                    f"request mended: {in_words(event.rung, event.anomalies)}", chat_why.of_repair(event)
                )
            case events.Compacting():
                self._view.settle()
                self._note("summarising older history …")
                self._activity("summarising older history")
            case events.Compacted(tokens_before=before, tokens_after=after):
                self._view.settle()
                self._note(f"older history is now a summary: {before:,} tokens became {after:,}")
                self._activity("waiting for the model")
            case events.TurnEnded():
                self._ended(event)
            case _:
                assert_never(event)
        self._view.changed()

    def _show_taken(self) -> None:
        """What was typed ahead, once it is said to the model: only then is it part of the conversation."""
        messages = self._session.messages
        for message in messages[min(self._seen, len(messages)) :] if self._steered else ():
            text = "".join(block.text for block in message.content if isinstance(block, Text))
            if message.role == "user" and text in self._steered:
                self._steered.remove(text)
                self._view.settle()
                self._view.show(UserText(safe(text)))
        self._seen = len(messages)

    def _activity(self, text: str) -> None:
        if not self.status.stopping:
            self.status.activity = text

    def _tell_failed(self, event: events.UserEvent) -> None:
        """A model call that failed, unless the end of the turn says the same."""
        failure, self._failed = self._failed, None
        if failure is None or (isinstance(event, events.TurnEnded) and event.failure == failure):
            return
        said = one_line(f"{failure.code}: {failure.message}", 200)
        self._told(f"the model call failed: {said}", chat_why.of_failure(failure))

    def _tool_started(self, call_id: str, line: CallLine) -> None:
        self._view.settle()
        self._view.show(line)
        self._above, self._calls[call_id] = call_id, line
        self.status.progress = ""
        self._activity(f"running {line.name}")

    def _tool_finished(self, event: events.ToolFinished) -> None:
        self._view.settle()
        item = result_lines(event)
        call = self._calls.pop(event.call_id, None)
        if self._above != event.call_id:
            item = replace(item, of=one_line(f"{call.name} {call.summary}" if call else item.name, OF_CHARS))
        self._above = None
        self._view.show(item)
        self.status.progress = ""
        self._activity("waiting for the model")
        if event.outcome not in ("done", "failed", "cancelled"):
            self._reasons.add(f"{item.name}: {item.outcome}", event.text.split("\n"))

    def _ended(self, event: events.TurnEnded) -> None:
        self._view.settle()
        took = time.monotonic() - self.status.since
        if event.reason == "completed":
            cost = self._session.cost
            money = f", ${cost:.4f} in all" if cost is not None else ""
            self._note(f"{took:.0f} s, {tokens_text(event.usage)}{money}")
            return
        why = event.failure.message if event.failure is not None else ""
        detail = "; ".join(part for part in (why, event.detail) if part)
        line = ENDINGS.get(event.reason, f"turn {event.reason}") + (f": {detail}" if detail else "")
        if event.failure is not None:
            self._told(line, chat_why.of_failure(event.failure), "bad")
        else:
            self._note(line, "warn")

    def _note(self, text: str, tone: Tone = "dim") -> None:
        self._view.show(NoteLine(one_line(text, 500), tone))

    def _told(self, line: str, details: list[str], tone: Tone = "warn") -> None:
        self._note(f"{line} (/why)", tone)
        self._reasons.add(one_line(line, 500), details)


def tokens_text(usage: Usage) -> str:
    """Token counts in few characters."""
    prompt = usage.context_tokens - usage.output_tokens
    return f"{prompt:,} tokens in, {usage.output_tokens:,} out" + (" (estimated)" if usage.estimated else "")
