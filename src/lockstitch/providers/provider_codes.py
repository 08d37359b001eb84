"""Words a machine reads in an error (types, codes, google's status names), and what each means.

Compared whole and in lower case. ``STRONG`` codes mean one thing wherever they appear and come before any
wording; ``WEAK`` ones only sort (a gateway puts ``invalid_request_error`` on anything) and come after it.
Numbers that mean something only at one vendor stand behind its profile's name. Sources, read 2026-11-30:
https://platform.claude.com/docs/en/api/errors, https://api-docs.deepseek.com/quick_start/error_codes.md,
https://docs.bigmodel.cn/cn/api/api-code (Zhipu's and Z.AI's numbers),
https://platform.minimax.io/docs/api-reference/errorcode.md, and the reports in the tests' tables.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from ..schema.failures import FailureCode
from .error_statuses import ACCESS, ANY, DETERMINISTIC, MODEL_AT, QUOTA_AT, REQUEST, SERVER, Statuses


class CodeRow(NamedTuple):
    code: FailureCode
    statuses: Statuses
    words: str
    """Separated by white space."""
    subkind: str | None = None


STRONG: Final = (
    CodeRow("INVALID_STRUCTURE", ANY, "invalid_request_message_order invalid_encrypted_content"),
    CodeRow(
        "CONTEXT_WINDOW_EXCEEDED",
        REQUEST,
        """context_length_exceeded context_window_exceeded exceed_context_size_error
        contextwindowexceedederror litellm.contextwindowexceedederror model_context_window_exceeded
        max_context_length_exceeded context_too_large tokens_limit_reached input_too_long prompt_too_long
        zhipu:1261""",
    ),
    CodeRow(
        "QUOTA",
        QUOTA_AT | SERVER,
        """insufficient_quota exceeded_current_quota_error billing_error billing_hard_limit_reached
        billing_not_active insufficient_balance insufficient_user_quota insufficient_credits
        pre_consume_token_quota_failed account_deactivated arrearage quota_exceeded usage_limit_reached
        minimax:1008 minimax:2056 zhipu:1113 zhipu:1304 zhipu:1308 zhipu:1309
        zhipu:1310""",
    ),
    CodeRow(
        "CONTENT_FILTER",
        DETERMINISTIC | {403},
        """content_filter content_filtered content_policy_violation responsibleaipolicyviolation
        data_inspection_failed datainspectionfailed contentpolicyviolationerror
        litellm.contentpolicyviolationerror sensitive_words_detected minimax:1026 minimax:1027 zhipu:1301""",
    ),
    CodeRow(
        "MODEL_NOT_FOUND",
        MODEL_AT | {500, 503},
        """model_not_found deploymentnotfound model_not_available model_not_supported unsupported_model
        model_decommissioned invalid_model modelnotfound unknown_model model_not_exist
        zhipu:1211 zhipu:1221 zhipu:1222""",
    ),
    CodeRow("OVERLOADED", REQUEST | {429}, "zhipu:1312"),
    CodeRow("MALFORMED_TOOL_CALL", REQUEST, "tool_use_failed output_parse_failed"),
    CodeRow("REQUEST_TOO_LARGE", REQUEST, "request_too_large payload_too_large"),
    CodeRow(
        "UNSUPPORTED_CONTENT",
        REQUEST,
        """invalid_image invalid_image_format invalid_image_url invalid_base64_image image_parse_error
        unsupported_image unsupported_image_media_type image_too_large image_too_small image_file_too_large
        empty_image_file failed_to_download_image image_file_not_found""",
    ),
    CodeRow("INVALID_TOOL_SCHEMA", REQUEST, "invalid_function_parameters invalid_tool_schema"),
    CodeRow("AUTH", ACCESS, "invalid_api_key api_key_invalid invalid_authentication_error"),
)
"""429 and 5xx stay what the status says, but for what no waiting cures: a quota, a missing model."""

WEAK: Final = (
    CodeRow(
        "OVERLOADED",
        SERVER,
        """overloaded_error overloaded unavailable engine_overloaded_error server_overloaded
        service_unavailable serviceunavailableexception modelnotreadyexception capacity_exceeded
        litellm.serviceunavailableerror serviceunavailableerror slow_down""",
    ),
    CodeRow(
        "RATE_LIMIT",
        REQUEST | SERVER | {403, 429},
        """rate_limit_error rate_limit_exceeded rate_limit_reached_error rate_limited rate_limit
        resource_exhausted throttlingexception throttling throttling.ratequota throttling.allocationquota
        toomanyrequests toomanyrequestsexception too_many_requests ratelimitreached requests tokens
        litellm.ratelimiterror ratelimiterror provider.rate_limit limitexceeded minimax:1002 minimax:1039
        minimax:1041 minimax:2045 zhipu:1302 zhipu:1303""",
    ),
    CodeRow(
        "TIMEOUT",
        SERVER,
        """timeout_error deadline_exceeded request_timeout modeltimeoutexception timeout minimax:1001""",
    ),
    CodeRow(
        "AUTH",
        REQUEST,
        """authentication_error permission_error unauthenticated permission_denied accessdeniedexception
        unrecognizedclientexception expiredtokenexception invalidsignatureexception unauthorized
        litellm.authenticationerror authenticationerror minimax:1004 minimax:2049 zhipu:1000 zhipu:1001
        zhipu:1002 zhipu:1003 zhipu:1004 zhipu:1110 zhipu:1111 zhipu:1112 zhipu:1120 zhipu:1121 zhipu:1220""",
    ),
    CodeRow("MODEL_NOT_FOUND", frozenset({None}), "not_found_error not_found resourcenotfoundexception"),
    CodeRow(
        "SERVER",
        frozenset({None}),
        """api_error server_error internal_error internal_server_error internal internalserverexception
        modelstreamerrorexception upstream_error provider_error litellm.internalservererror litellm.apierror
        litellm.apiconnectionerror minimax:1000 minimax:1013 minimax:1024 minimax:1033 zhipu:500 zhipu:1200
        zhipu:1230 zhipu:1234""",
    ),
    CodeRow(
        "INVALID_REQUEST",
        frozenset({None}),
        """invalid_request_error invalid_argument validationexception bad_request litellm.badrequesterror
        invalid_parameter_error failed_precondition invalid_prompt minimax:2013 zhipu:1210 zhipu:1213
        zhipu:1214 zhipu:1215""",
        "unrecognised",
    ),
)


NUMBERING: Final[Mapping[str, str]] = {"minimax": "minimax", "zhipu": "zhipu", "zai": "zhipu"}
"""Profiles whose vendor has numbers of its own, and how they are written in the tables."""


def numbered(codes: list[str], profile: str) -> list[str]:
    """``codes`` with the numbers among them also in the form of the tables, if the profile's vendor has its
    own."""
    vendor = NUMBERING.get(profile)
    return codes if vendor is None else [*codes, *(f"{vendor}:{code}" for code in codes if code.isdigit())]


def by_code(codes: list[str], status: int | None, table: tuple[CodeRow, ...]) -> CodeRow | None:
    """The first row of ``table`` that lists one of ``codes`` (any case) at ``status``."""
    wanted = {code.lower() for code in codes}
    for row, words in _split(table):
        if status in row.statuses and not wanted.isdisjoint(words):
            return row
    return None


@cache
def _split(table: tuple[CodeRow, ...]) -> tuple[tuple[CodeRow, frozenset[str]], ...]:
    return tuple((row, frozenset(row.words.split())) for row in table)
