"""What providers say when they refuse, as a table: the first row that fits a status and a text decides.

Order is meaning. Rows above shield rows below: what an output limit, a limit per minute or a quota shares with
an overflow ("maximum", "tokens", "exceeds") is told apart here and nowhere else.

A row holds one phrase a line. A phrase is a regular expression over ``error_body.normalised`` text (lower case,
every quote a ``'``, single spaces), in which `` ... `` stands for a gap of at most 60 characters. No phrase
repeats without a bound inside a repeat, so each is linear in a text that is itself at most 8 KiB.

Public reports of these wordings: tests/recorded/cases/errors.jsonl and tests/spec/test_classify_wordings.py.
"""
# ruff: noqa: E501 - a phrase is one line, or it could not be read

import re
from functools import cache
from typing import Final, NamedTuple

from ..schema.failures import FailureCode
from .error_statuses import (
    ACCESS,
    ANY,
    BUSY_AT,
    DETERMINISTIC,
    IN_STREAM,
    MODEL_AT,
    PAYLOAD,
    QUOTA_AT,
    REQUEST,
    ROUTE,
    SERVER,
    WAITING_AT,
    Statuses,
)
from . import wordings_structure

GAP: Final = r".{0,60}"


class Row(NamedTuple):
    code: FailureCode
    statuses: Statuses
    phrases: str
    subkind: str | None = None
    unless: str = ""
    """Phrases that overrule the row."""


TABLE: Final = (
    Row("INVALID_STRUCTURE", ANY, wordings_structure.PHRASES),
    # waiting helps: a limit per minute, whatever else the sentence says about size
    Row(
        "RATE_LIMIT",
        WAITING_AT,
        r"""
        (?:tokens?|requests?|calls?|images?)(?: ?\w{1,12})? ?(?:per|/|a) ?(?:min|minute|second|sec|hour)
        (?:this|each|every|one) (?:minute|second)\b
        \b(?:tpm|rpm|rps|itpm|otpm|qps|qpm)\b
        too many tokens, please wait
        too many requests
        rate[ _-]?limit
        request rate increased
        (?<!free )allocated quota exceeded
        concurren(?:cy|t) (?:request )?limit
        too many concurrent
        速率限制
        并发
        """,
    ),
    # waiting does not help: money
    Row(
        "QUOTA",
        QUOTA_AT,
        r"""
        (?:exceed(?:ed|s)?|out of|over) (?:\w{1,10} ){0,3}(?:quota|usage limit|spend(?:ing)? limit|budget)
        insufficient[ _](?:\w{1,10} )?(?:balance|quota|credits?|funds)
        credit balance (?:is )?too low
        (?:not enough|out of|no) (?:remaining )?(?:credits?|balance|funds|quota)\b
        balance (?:is )?(?:too low|insufficient|not enough|exhausted)
        please (?:recharge|top up|add (?:more )?(?:credits|funds))
        requires (?:more|additional) credits?
        negative (?:credit )?balance
        arrear(?:age|s)
        overdue[- ]payment
        billing (?:hard )?limit
        hard limit ... reached
        account is in good standing
        check your plan and billing
        account ... is not active
        (?:monthly|weekly|daily|spend(?:ing)?|budget|usage|plan|free) (?:\w{1,12} )?(?:limit|quota|cap)s? ... (?:reached|exceeded|exhausted|used)
        (?:reached|hit|exceeded) (?:your|the) (?:\w{1,12} ){0,3}(?:usage|spend(?:ing)?|monthly|weekly|plan) (?:limit|cap)
        free (?:tier|quota|allocated quota) ... exhausted
        no resource package
        payment required
        key limit exceeded
        exceededbudget
        extra usage is required
        budget (?:has been |is )?exceeded
        used all available credits
        run out of credits
        spend(?:ing)? (?:limit|cap)
        quota (?:is |has been )?(?:exhausted|not enough|insufficient|exceeded|used up)
        (?:requests?|tokens?) per day
        \b(?:rpd|tpd)\b
        perday
        欠费|余额不足|额度不足|额度已
        """,
    ),
    Row(
        "TIMEOUT",
        SERVER,
        r"""
        context (?:deadline exceeded|cancell?ed)
        deadline[ _]exceeded
        \btimed? ?out\b
        gateway time-?out
        """,
    ),
    Row(
        "OVERLOADED",
        BUSY_AT,
        r"""
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
        """,
    ),
    Row(
        "AUTH",
        ACCESS,
        r"""
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
        """,
        unless=r"""
        not found the model
        access to (?:the )?model
        """,
    ),
    Row(
        "CONTENT_FILTER",
        DETERMINISTIC | {403, 451},
        r"""
        content[ _](?:management|filter|polic|exists risk)
        (?:safety|moderation) (?:system|filter|polic|reason|settings)
        requires moderation
        inappropriate content
        usage polic
        potentially (?:violat|harm)
        considered high risk
        flagged (?:as|for|by)
        violat(?:es|ed|ing|ion of) ... (?:polic|guidelines|terms)
        prohibited[ _]content
        blocked by ... (?:polic|safety|filter|guardrail)
        sensitive (?:content|words?|information)
        new_sensitive
        敏感
        """,
    ),
    Row(
        "MALFORMED_TOOL_CALL",
        REQUEST,
        r"""
        failed to call a function
        tool call validation failed
        tool choice is required, but model did not
        """,
    ),
    Row(
        "INVALID_TOOL_SCHEMA",
        DETERMINISTIC,
        r"""
        invalid (?:schema for )?(?:function|tool)(?: ?'| (?:name|schema|definition|parameters)\b)
        tools: input tag
        schema produces a constraint
        (?:function|tool) (?:parameters|schema) (?:schema )?(?:must|should|is|are)
        \b(?:tools|functions)(?:\[\d+\]|\.\d+|\[\])?\.(?:\d+\.|\w{1,24}\.)?(?:input_schema|parameters|function|name|description)
        input_schema|inputschema|toolspec
        function[_ ]?declarations?\b
        tools\[\d+\]
        (?:json )?schema (?:is )?(?:invalid|not valid)
        flavored json schema
        (?:tool|function) names? (?:must|should|are|is) ... (?:unique|match|pattern|valid|length|alphanumeric)
        'tools' ?:? (?:array too long|maximum number of items)
        too many (?:tools|functions)
        number of (?:tools|functions) ... (?:exceed|maximum|limit|at most)
        """,
    ),
    # room for the answer: shields the overflow rows, with which it shares most words
    Row(
        "OUTPUT_LIMIT",
        REQUEST,
        r"""
        max_(?:completion_|output_|new_)?tokens'?(?: or 'max_completion_tokens')?:? (?:is |are )?too (?:large|high|big|many)
        max_(?:completion_|output_|new_)?tokens'?:? \d{1,9} >
        max_(?:completion_|output_|new_)?tokens'?:? ... (?:less than or equal|at most|between|exceeds? the (?:model|max|limit)|maximum (?:value|allowed))
        max_(?:completion_|output_|new_)?tokens'? ?(?:value |of |\(?\d{1,9}\)? ){0,3}(?:exceeds|is larger|is greater)
        max_(?:completion_|output_|new_)?tokens'? ?(?:\(\d{1,9}\) )?(?:should|must|cannot) be (?:less|lower|smaller|at most|more than)
        maximum output length
        invalid max_(?:completion_|output_)?tokens
        range of max_(?:completion_|output_)?tokens
        supports at most \d{1,9} (?:completion|output) tokens
        maximum (?:allowed )?(?:number of )?(?:output|completion) tokens ... (?:is|for|exceed|must)
        maxoutputtokens
        maximum tokens you requested
        """,
        unless=r"context window limit|must be at least",
    ),
    # the prompt: the only rows that start a compaction
    Row(
        "CONTEXT_WINDOW_EXCEEDED",
        REQUEST,
        r"""
        max_(?:completion_)?tokens'? must be at least 1, got (?:-\d|0\b)
        (?:prompt|input|messages?|conversation|history) (?:is |are |was )?too (?:long|large for)
        (?:request|prompt|input) (?:\w{1,12} ){0,3}too large for (?:the |this )?(?:model|context)
        max(?:imum)?[ _]?(?:model |allowed )?(?:context|prompt)[ _](?:length|window|size|tokens?)
        max(?:imum)?[ _](?:allowed )?input[ _](?:length|tokens?)
        max_model_len
        maximum number of (?:input )?tokens (?:allowed|exceed)
        context[ _-]?(?:length|window|size|limit)(?: limit)?(?: of [\w-]{1,40})?(?: \([^)]{0,40}\))? ?(?:was |is |has been )?(?:exceed|overflow|reached|full)
        exceed(?:s|ed|ing)? (?:(?:the|this|its|your|available|maximum|max|model's|model) ){0,4}(?:context|token limit)
        exceed(?:s|ed|ing)? (?:(?:the|this|its|your) ){0,1}max(?:imum)? (?:input |prompt )?tokens?
        (?:longer|larger|greater|bigger|more) than (?:(?:the|this|its|maximum|available|model's|model|allowed) ){0,4}context
        context the overflows
        context overflow
        (?:prompt|input)(?: tokens?| token count| length){0,2}(?: of)?(?: \(?\d{1,9}(?: tokens)?\)?)?,? (?:exceeds?|exceeded|is longer than|is greater than|cannot exceed)
        (?:token count|number of (?:input |prompt )?tokens|total (?:number of )?tokens) ... (?:exceed|too large for model)
        range of input length
        too many (?:input |prompt )?tokens
        \d{1,9} tokens, too large for model
        reduce (?:the |your )?(?:length of )?(?:the |your )?(?:messages|prompt|context|input messages)
        decrease (?:the )?(?:input|prompt) length
        shorten (?:the |your )?(?:messages|prompt|conversation)
        'inputs' tokens \+ 'max_new_tokens'
        'inputs' must have less than \d{1,9} tokens
        expected maxlength: \d{1,12}, actual: \d{1,12}
        prompt exceeds max length
        (?:prompt|input|request|conversation) (?:has|contains) \d{1,9} tokens
        total length of input and output
        max size: \d{1,9} tokens
        n_prompt_tokens ... n_ctx
        more than (?:the )?max(?:imum)? (?:input |prompt )?tokens
        max(?:imum)? length exceeded
        context (?:length|window|size) (?:is|of) (?:only )?\d\S{0,12}(?: tokens)?[,;.]? (?:but|however|you|and|which)
        tokens > \d{3,9}
        context_length_exceeded|exceed_context_size|contextwindowexceeded
        (?:'messages'|'input'): array too long
        (?:messages|input)\[\d{1,6}\]\S{0,20}content\S{0,20}': string too long
        超(?:过|出|长).{0,20}(?:长度|上下文)
        (?:上下文|输入|prompt).{0,20}(?:超(?:过|出|长)|过长)
        """,
    ),
    Row(
        "MODEL_NOT_FOUND",
        DETERMINISTIC,
        r"""
        unsupported content part type: '(?:image|input_image|video|audio|input_audio|file)
        unknown variant '(?:image_url|image|input_image|input_audio|video_url|file)
        not a (?:multi-?modal|vision) model
        (?:not|n't) (?:currently )?support (?:image|vision|multi-?modal|input_image|image_url)
        support (?:image|vision) input
        (?:image|vision|multi-?modal)(?:s|_url)? ?(?:inputs?|content)? (?:is |are )?not (?:supported|enabled)
        at most 0 image
        only (?:supports? )?text (?:input|content|is)
        text-only model
        only supported by certain models
        mmproj
        """,
        "no_images",
    ),
    Row(
        "UNSUPPORTED_CONTENT",
        PAYLOAD,
        r"""
        images? (?:\w{1,12} ){0,3}(?:exceed|too (?:large|big|small|many)|not valid|invalid|does not match|unsupported|do not meet|does not meet)
        image[._](?:source|url)
        image dimensions
        could not process (?:the )?(?:image|pdf|document)
        unable to (?:process|download|decode|load|open|fetch) ... (?:image|media|content|file|url)
        (?:invalid|unsupported|corrupt(?:ed)?) (?:\w{1,12} )?(?:image|mime|media|pdf|audio|video|file)
        (?:too many|at most \d{1,4}|maximum of \d{1,4}) (?:\w{1,12} )?(?:images?|pdf|documents?|media)
        cannot identify image
        valid image\b
        image mime type
        (?:failed to|timeout while) download
        images?: unsupported
        data-uri item
        \bmedia_type|mime_?type
        pdf (?:pages|specified|cannot|is)
        invalid base64
        too much media
        """,
    ),
    Row(
        "REQUEST_TOO_LARGE",
        REQUEST,
        r"""
        (?:request|payload|body|content|entity)(?: entity| body| payload)? (?:size )?(?:is |was )?(?:too large|too big|exceeds)
        exceeds? the (?:maximum|max) (?:allowed )?(?:size|number of bytes|payload|body)
        maximum (?:request|body|payload) (?:body )?size
        body limit|size limit|request_too_large
        """,
    ),
    Row(
        "MODEL_NOT_FOUND",
        DETERMINISTIC,
        r"""
        (?:not|n't) (?:currently )?support (?:tools?\b|tool[ -_](?:use|call)|function)
        support tool use
        """,
        "no_tools",
    ),
    Row(
        "MODEL_NOT_FOUND",
        MODEL_AT,
        r"""
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
        """,
    ),
    Row("MODEL_NOT_FOUND", DETERMINISTIC, "no available channel|无可用渠道"),
    Row(
        "NOT_AN_API",
        ROUTE,
        r"""
        404 page not found
        ^(?:detail )?not found\.?$
        method not allowed
        cannot (?:get|post) /
        (?:route|path|endpoint|url|uri)\b ... (?:not found|invalid|unknown)
        (?:unknown|invalid) (?:url|path|endpoint|request url)
        no route
        """,
    ),
    Row("INVALID_STRUCTURE", REQUEST, wordings_structure.POINTERS),
    Row(
        "INVALID_REQUEST",
        REQUEST,
        r"""
        unsupported (?:value|parameter)
        unrecognized (?:request )?(?:argument|parameter|field)
        unknown (?:parameter|name|field)
        extra (?:inputs|fields) (?:are )?not permitted
        cannot both be specified
        only [\d.]{1,9} is allowed
        \b(?:temperature|top_p|top_k|stop|seed|logprobs|frequency_penalty|presence_penalty|budget_tokens|reasoning_effort|effort|tool_choice|response_format|parallel_tool_calls|stream_options)'?\b ... (?:not supported|is not|must be|invalid|not allowed|deprecated|may only|cannot|range|unsupported|should be|does not support|expected)
        """,
        "parameter",
    ),
    # last: sizes in tokens that no row above has explained
    Row(
        "CONTEXT_WINDOW_EXCEEDED",
        REQUEST,
        r"""
        \btokens? ... (?:exceed|too (?:many|long|large)|over the (?:limit|maximum)|limit reached)
        \btokens?\b ... (?:more|larger|longer|greater) than
        (?:exceed|more than|larger than|longer than|greater than|over) ... \btokens?\b
        \btoken limit\b
        """,
        unless=r"""
        output|completion|max_tokens|max_new|generat|budget|thinking|reasoning
        access token|bearer|api token|auth
        \b(?:minute|hour|day|month)
        """,
    ),
    Row(
        "STREAM_CLOSED",
        IN_STREAM,
        r"""
        missing finish_reason
        stream (?:was )?(?:ended|closed|terminated|interrupted) (?:before|without|unexpectedly|prematurely)
        premature(?:ly)? clos
        """,
    ),
    Row(
        "TRANSPORT",
        IN_STREAM,
        r"""
        econnreset|econnrefused|enotfound|socket hang up|broken pipe|fetch failed|network error
        connection (?:reset|refused|closed|error|aborted)
        """,
    ),
)


def by_wording(text: str, status: int | None, *, skip: frozenset[FailureCode]) -> Row | None:
    """The first row whose statuses hold ``status`` and one of whose phrases is in ``text`` (already normalised)."""
    for row, pattern, overruled in _compiled():
        if status not in row.statuses or row.code in skip or not pattern.search(text):
            continue
        if overruled is None or not overruled.search(text):
            return row
    return None


@cache
def _compiled() -> tuple[tuple[Row, re.Pattern[str], re.Pattern[str] | None], ...]:
    return tuple((row, _pattern(row.phrases), _pattern(row.unless) if row.unless else None) for row in TABLE)


def _pattern(phrases: str) -> re.Pattern[str]:
    lines = (line.strip() for line in phrases.splitlines())
    return re.compile("|".join(line.replace(" ... ", GAP) for line in lines if line))
