"""Who may say that a tool runs: rules, a decision given beforehand, a person, or nobody.

The rules themselves are ``tools.approval``; here they meet the session and whoever can be asked.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from ..schema.blocks import ToolCall
from ..schema.errors import CallerError
from ..tools import approval_file, workspace
from ..tools.approval import Policy, decide
from ..tools.contract import Tool
from ..wire import strict_json
from .events import ApprovalNeeded
from .inputs import CallAsked, CallDecided


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer."""

    allowed: bool
    reason: str = ""
    """Told to the model if it was denied."""
    remember: Literal["no", "session", "always"] = "no"
    """Also for later calls of the kind that ``ApprovalNeeded.rule`` names: in this session, resumed or not,
    or in this workspace for good."""


Answer: TypeAlias = bool | str | Decision
"""True allows; False denies; a text denies and says why."""
Approver: TypeAlias = Callable[[ApprovalNeeded], Answer | Awaitable[Answer]]


@dataclass(slots=True)
class Approvals:
    """Decides about the calls of one session."""

    workspace: Path
    policy: Policy = field(default_factory=Policy)
    beforehand: str = ""
    """Who approved everything beforehand (``--yes``); empty: nobody did."""
    approver: Approver | None = None
    file: Path | None = None
    """Keeps what is allowed for good; None: that is not offered and not read."""

    def decide(
        self, position: int, call: ToolCall, tool: Tool, session_rules: Iterable[str]
    ) -> CallDecided | CallAsked:
        """The decision, or the question for a person. Raises CallerError if ``file`` cannot be read."""
        try:
            arguments = strict_json.arguments(call.arguments)
        except strict_json.InvalidJson:
            # The tool will not run: its answer says what is wrong with the arguments.
            return CallDecided(position, "allowed", by="policy", logged=False)
        found = decide(
            self._policy(session_rules),
            call.name,
            arguments,
            needs=tool.needs,
            resolve=lambda path: workspace.relative(self.workspace, path),
        )
        needed = tool.needs == "approval"
        match found.verdict:
            case "allow":
                return CallDecided(position, "allowed", by="policy", reason=found.reason, logged=needed)
            case "deny":
                return CallDecided(position, "denied", by="policy", reason=found.reason)
            case "ask" if self.beforehand and not found.insist:
                return CallDecided(position, "allowed", by=self.beforehand)
            case "ask" if self.approver is None:
                return CallDecided(position, "nobody", reason=found.reason)
            case "ask":
                return CallAsked(position, reason=found.reason, rule=found.remember)

    async def put_to_person(self, call: ToolCall, asked: CallAsked) -> CallDecided:
        """The answer of whoever is there. Raises what the approver raises."""
        assert self.approver is not None, "only a question to a person gets here"
        answer = self.approver(
            ApprovalNeeded(
                call_id=call.id,
                name=call.name,
                arguments=call.arguments,
                reason=asked.reason,
                rule=asked.rule,
            )
        )
        if inspect.isawaitable(answer):
            answer = await answer
        decision = _decision(answer)
        remember = decision.remember if decision.allowed and asked.rule else "no"
        if remember == "always":
            if self.file is None:
                remember = "session"
            else:
                approval_file.remember(self.file, self.workspace, asked.rule)
        return CallDecided(
            position=asked.position,
            decision="allowed" if decision.allowed else "denied",
            by="user",
            reason=decision.reason,
            remember=remember,
            pattern=asked.rule if remember != "no" else "",
        )

    def _policy(self, session_rules: Iterable[str]) -> Policy:
        rules = list(session_rules)
        if self.file is not None:
            rules += approval_file.load(self.file, self.workspace).allow
        return self.policy.allowing(*rules) if rules else self.policy


def _decision(answer: Answer) -> Decision:
    match answer:
        case Decision():
            return answer
        case str():
            return Decision(allowed=False, reason=answer)
        case bool():
            return Decision(allowed=answer)
        case _:
            # A forgotten `return` must neither allow nor look like a person's no.
            raise CallerError(
                f"the approver answered {answer!r}; it answers True, False, why not as a text, or a Decision"
            )
