"""What providers say about what is in a request: pictures, tools, options, and what a filter makes of it.

The form of the phrases is that of ``wordings``.
"""
# ruff: noqa: E501 - a phrase is one line, or it could not be read

from typing import Final

FILTER: Final = r"""
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
"""

BAD_CALL: Final = r"""
    failed to call a function
    tool call validation failed
    tool choice is required, but model did not
"""
"""The model's own tool call was refused by its provider: another try writes another one."""

TOOL_SCHEMA: Final = r"""
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
"""

NO_IMAGES: Final = r"""
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
"""
"""The model has no eyes."""

MEDIA: Final = r"""
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
"""

PARAMETER: Final = r"""
    unsupported (?:value|parameter)
    unrecognized (?:request )?(?:argument|parameter|field)
    unknown (?:parameter|name|field)
    extra (?:inputs|fields) (?:are )?not permitted
    cannot both be specified
    only [\d.]{1,9} is allowed
    \b(?:temperature|top_p|top_k|stop|seed|logprobs|frequency_penalty|presence_penalty|budget_tokens|reasoning_effort|effort|tool_choice|response_format|parallel_tool_calls|stream_options)'?\b ... (?:not supported|is not|must be|invalid|not allowed|deprecated|may only|cannot|range|unsupported|should be|does not support|expected)
"""
