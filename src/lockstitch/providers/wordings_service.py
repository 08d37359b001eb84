"""What providers say about themselves: too slow, too busy, no such key, no such model, no such address.

The form of the phrases is that of ``wordings``.
"""
# ruff: noqa: E501 - a phrase is one line, or it could not be read

from typing import Final

TIMEOUT: Final = r"""
    context (?:deadline exceeded|cancell?ed)
    deadline[ _]exceeded
    \btimed? ?out\b
    gateway time-?out
"""

OVERLOADED: Final = r"""
    overload
    (?:at|over) capacity
    capacity exceeded
    (?:no|out of) (?:available )?capacity
    (?:requests?|concurrency|queue|connections?) limit (?:is )?(?:reached|exceeded)
    \b(?:server|service|system|model|engine)s? (?:is|are) (?:\w{1,12} )?busy
    server busy
    high demand
    slow down
    (?:currently|temporarily) (?:unavailable|not available)
    queue (?:is )?full
    max(?:imum)? concurrency reached
    workers (?:are )?busy
    负载|繁忙|访问量过大
"""

AUTH: Final = r"""
    (?:invalid|incorrect|wrong|missing|expired|revoked|disabled|no|malformed) (?:\w{1,12} )?'?(?:x-)?api[- _]?key
    (?:invalid|incorrect|wrong|missing|expired|revoked|no) (?:\w{1,12} )?(?:access token|bearer token|credentials?|authorization)
    api key ... (?:not valid|not found|invalid|expired|missing|required|revoked|disabled|not exist)
    did(?:n't| not) provide an api key
    authentication (?:fails|failed|error|required)
    \bunauthori[sz]ed
    not authori[sz]ed
    permission denied
    access denied
    \b(?:security )?token (?:\w{1,12} )?(?:is )?(?:expired|invalid)
    (?:location|country|region|territory) ... not supported
    api secret key
    无效的令牌
"""

AUTH_NOT: Final = r"""
    not found the model
    access to (?:the )?model
"""

NO_TOOLS: Final = r"""
    (?:not|n't) (?:currently )?support (?:tools?\b|tool[ -_](?:use|call)|function)
    support tool use
"""
"""The model knows no tools."""

MODEL: Final = r"""
    \bmodels?\b.{0,120}(?:is |was |does |do |been )?(?:not |n't )(?:found|exist|available|supported|enabled|deployed|accessible|recogni[sz]ed|a chat model)
    \bmodels?\b ... (?:no longer (?:available|supported)|is (?:invalid|unknown|deprecated|unavailable|retired)|decommissioned|not a valid)
    not a valid model
    have access to (?:the )?model
    (?:invalid|unknown|unsupported|no such|nonexistent|not supported) model
    model identifier is invalid
    model not (?:exist|found)
    model is (?:unloaded|not loaded)
    failed to load model
    no (?:allowed providers|endpoints|available channel|healthy deployments?|deployments?)
    deployment ... not (?:exist|found)
    无可用渠道|模型不存在
"""

CHANNEL: Final = r"""
    no available channel|无可用渠道
"""
"""A gateway without a route to the model, whatever status it chooses."""

NOT_AN_API: Final = r"""
    404 page not found
    ^(?:detail )?not found\.?$
    method not allowed
    cannot (?:get|post) /
    (?:route|path|endpoint|url|uri)\b ... (?:not found|invalid|unknown)
    (?:unknown|invalid) (?:url|path|endpoint|request url)
    no route
"""

STREAM_CLOSED: Final = r"""
    missing finish_reason
    stream (?:was )?(?:ended|closed|terminated|interrupted) (?:before|without|unexpectedly|prematurely)
    premature(?:ly)? clos
"""

TRANSPORT: Final = r"""
    econnreset|econnrefused|enotfound|socket hang up|broken pipe|fetch failed|network error
    connection (?:reset|refused|closed|error|aborted)
"""
