"""How providers say that a history's structure is wrong: pairs, ids, roles, blank content, reasoning.

The form of the phrases is that of ``wordings``. They count at any status: some gateways wrap a refusal that will
never change in a 500, and retrying that is what bricks a session.
"""
# ruff: noqa: E501 - a phrase is one line, or it could not be read

from typing import Final

PHRASES: Final = r"""
    unexpected '?tool_?(?:use_id|result)
    tool_?result'? blocks? ... must have a corresponding
    tool_?use'? (?:ids|blocks?)\b ... (?:without|corresponding) '?tool_?result
    (?:tool|function)[ _](?:result|response|output|message)s? ... (?:preceding|previous|corresponding|matching|immediately)
    (?:tool|function)[ _]?(?:call|use)s? ... (?:corresponding|matching|unanswered|without a|without any|missing) ... (?:result|response|output)
    did not find \d{1,4} '?tool_?result
    cannot be provided in the same turn
    output of tool call should be
    none match pending tool_use
    expected '?toolresult'? blocks? at
    toolresult blocks ... exceeds? the number of tooluse
    tool_?(?:use|call)'? ids? (?:must be|are not|is not) unique
    tool call ids? (?:is|are) duplicated?
    duplicate ... tool[ _]?(?:use|call|result)
    tool_?call_?id'? ... (?:not found|does not match|mismatch|unknown|cannot be null)
    duplicate item found
    duplicate '?(?:call_id|tool_call_id|tool_use_id|id)'?
    role:? '?tool'? must be a response to a prece+ding
    messages? with role '?tool'? ... (?:must|without|missing)
    must be followed by tool messages
    did not have response messages
    insufficient tool messages
    no tool (?:call|output) (?:was )?found for (?:\w{1,12} ){1,3}call
    no (?:function|tool) call found (?:for|with|matching)
    number of function (?:response|call) parts
    function (?:call|response) turn (?:comes|must|contains)
    unknown name '[^']{1,60}' at '(?:request\.)?contents
    not the same number of function calls and responses
    unexpected tool call id
    tool call id (?:was|has to be|must)
    tool messages? (?:must|should|need to|have to) (?:\w{1,12} ){0,3}(?:follow|be preceded|answer|respond)
    missing (?:a )?(?:tool|function) (?:result|response|output)s?
    orphan(?:ed)? (?:tool|function)
    message has tool role
    no previous assistant message
    must have a single result
    (?:tool|function) (?:call )?(?:results?|responses?) (?:does|do) not (?:follow|match)
    tool result's tool id
    function (?:call|response) and function (?:call|response) mismatch
    missing field 'tool_call_id'
    corresponding tool call

    '[^']{0,60}(?:tool_calls?|tool_?call_?id|call_id|input\[\d{1,6}\]\.id|tool_use_id|tool_use\.id)[^']{0,40}': ... (?:too long|empty string|pattern|expected an id|cannot be)
    (?:tool_use\.id|tool_use_id|tool_call_id|call_id)'?:? ... (?:should match|must match|too long|empty|required|missing|at least 1 character)
    expected an id that begins with '

    unexpected role
    roles? must alternate
    alternat(?:e|ing) between
    multiple '?\w{1,12}'? roles in a row
    consecutive '?(?:user|assistant|tool|system|model)'? (?:messages|turns|roles)
    first message must (?:use|be|have)
    (?:conversation|messages?) (?:must|should) (?:start|begin|end) with
    last message (?:role )?must
    assistant messages? at the end
    ending with an assistant message
    pre-?filling the assistant
    first user message
    must end with a user
    assistant message prefill|prefill(?:ing)? is not supported|does not support prefill
    expected last role
    chatmessagerole
    please use a valid role
    system (?:message|role) must be (?:at )?the (?:first|beginning)
    no user query found
    at least one (?:user )?message is required
    messages:? (?:list |array )?(?:must not be|cannot be|is|should not be) empty
    contents (?:is|are) (?:not specified|required|empty)

    content blocks must (?:be non-empty|contain non-whitespace)
    cannot end with trailing whitespace
    (?:must have|contains) an? (?:empty )?text parameter
    chat content is empty
    at least one content element
    must be non-empty|must contain non-whitespace|empty text blocks
    text field in the contentblock ... is blank
    (?:content|text) field (?:at|in) ... (?:empty|blank)
    must have non-empty content
    message ... must not be empty
    content (?:or tool_?calls )?must be set
    content or tool_?calls
    (?:message|content)s? (?:cannot|can not|can't|may not) be empty
    parts (?:field )?must not be empty
    must include at least one parts
    must have one initialized field
    content': ... got null

    arguments\b ... (?:must be|not|invalid|valid|parse|expected) (?:\w{1,12} ){0,4}json
    tool_use\.input: ... (?:dictionary|object)
    failed to parse ... arguments
    invalid tool call in messages
    (?:invalid|malformed) function arguments

    expected '?(?:thinking|redacted_thinking)'?
    must start with a thinking block
    signature'? in '?thinking
    thinking'? blocks? ... (?:cannot be modified|must remain|signature)
    thinking\.signature|thought[_ ]?signature|corrupted thought
    reasoning_content'? ... (?:must be passed|missing|required|not allowed)
    missing '?reasoning_content
    without its required (?:following|preceding|'reasoning)
    encrypted content ... (?:could not|cannot|invalid)
    invalid_encrypted_content
    item with id '[^']{0,80}' not found

    surrogate
    not valid json(?! schema)|could not parse the json body
    invalid unicode|unexpected end of hex escape
"""

CALLS_WITHOUT_TOOLS: Final = r"""
    toolconfig field must be defined
    tool_?(?:use|result|calls?)'? ... must define '?tools
    tool calling without '?tools=
    expects the '?tools=
"""
"""The history holds calls and the request offers no tools: only text instead of the calls helps."""

POINTERS: Final = r"""
    \b(?:messages|contents|input)(?:\.?\[\d{1,6}\]|\.\d{1,6})
    \b(?:assistant|tool|function) (?:messages?|turns?|results?|responses?)\b ... (?:must|cannot|not supported|not allowed|missing|expected)
    (?:tool|function) calls? ... (?:must|not allowed) ... (?:result|response|message)
"""
"""A refusal that points into the history and that no other row has explained. At request statuses only."""
