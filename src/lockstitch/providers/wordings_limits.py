"""What providers say about limits: per minute, of money, of output, of the window, of bytes.

The form of the phrases is that of ``wordings``, and so is the order in which they are tried. An output limit, a
limit per minute and a quota share their words ("maximum", "tokens", "exceeds") with an overflow; only that order
and these phrases keep them apart, and a compaction that one of them starts costs history for nothing.
"""
# ruff: noqa: E501 - a phrase is one line, or it could not be read

from typing import Final

RATE: Final = r"""
    (?:tokens?|requests?|calls?|images?)(?: ?\w{1,12})? ?(?:per|/|a) ?(?:min|minute|second|sec|hour)
    (?:this|each|every|one) (?:minute|second)\b
    \b(?:tpm|rpm|rps|itpm|otpm|qps|qpm)\b
    too many tokens, please wait
    too many requests
    rate[ _-]?limit
    request rate increased
    slow down
    (?<!free )allocated quota exceeded
    concurren(?:cy|t) (?:request )?limit
    too many concurrent
    速率限制
    并发
"""
"""Waiting helps: a limit per minute, whatever else the sentence says about size."""

QUOTA: Final = r"""
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
"""
"""Waiting does not help: money, or a limit per day or more."""

OUTPUT: Final = r"""
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
"""
"""Room for the answer."""

OUTPUT_NOT: Final = r"""
    context window limit|must be at least
"""

OVERFLOW: Final = r"""
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
"""
"""The prompt. With UNEXPLAINED_TOKENS the only phrases that start a compaction."""

TOO_LARGE: Final = r"""
    (?:request|payload|body|content|entity)(?: entity| body| payload)? (?:size )?(?:is |was )?(?:too large|too big|exceeds)
    exceeds? the (?:maximum|max) (?:allowed )?(?:size|number of bytes|payload|body)
    maximum (?:request|body|payload) (?:body )?size
    body limit|size limit|request_too_large
"""
"""Bytes."""

UNEXPLAINED_TOKENS: Final = r"""
    \btokens? ... (?:exceed|too (?:many|long|large)|over the (?:limit|maximum)|limit reached)
    \btokens?\b ... (?:more|larger|longer|greater) than
    (?:exceed|more than|larger than|longer than|greater than|over) ... \btokens?\b
    \btoken limit\b
"""
"""Sizes in tokens that nothing else has explained."""

UNEXPLAINED_TOKENS_NOT: Final = r"""
    output|completion|max_tokens|max_new|generat|budget|thinking|reasoning
    access token|bearer|api token|auth
    \b(?:minute|hour|day|month)
"""
