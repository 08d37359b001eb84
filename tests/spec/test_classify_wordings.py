"""Further wordings that users met, beside the recorded cases: provider, status, body, code, where it was reported.

Bodies are as they came, with ids and names cut out. All reports read 2026-11-30; a row without an address follows
from the one above it. Look-alikes stand in both directions: what would start a needless compaction, and what would
hide one that is due.
"""
# ruff: noqa: E501 - a case is one line, or the table could not be read

import json
from typing import Any, NamedTuple

import pytest

from lockstitch.providers.classify import classify

GH = "https://github.com/"


class Case(NamedTuple):
    provider: str
    status: int | None
    body: str | dict[str, Any]
    code: str
    report: str = ""


def wrapped(raw: str) -> dict[str, Any]:
    """How OpenRouter passes on what an upstream said."""
    return {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": raw, "provider_name": "P"},
        }
    }


def google(message: str, status: str, code: int, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def quota_failure(quota_id: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26s"}
EXCEEDED = "You exceeded your current quota, please check your plan and billing details."

OVERFLOW = [
    Case("zai", 400, "tokens in request more than max tokens allowed", "CONTEXT_WINDOW_EXCEEDED", GH + "anomalyco/opencode/issues/27629"),
    Case("moonshot", 400, "model max length exceeded, max length:8192", "CONTEXT_WINDOW_EXCEEDED", GH + "MoonshotAI/MoonshotAI-Cookbook/issues/18"),
    Case("moonshot", 400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", "CONTEXT_WINDOW_EXCEEDED", GH + "MoonshotAI/kimi-cli/issues/2011"),
    Case("dashscope", 400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]", "CONTEXT_WINDOW_EXCEEDED", GH + "QwenLM/qwen-code/issues/98"),
    Case("mistral", 400, "Prompt contains 66385 tokens, too large for model with 32768 maximum context length", "CONTEXT_WINDOW_EXCEEDED", "https://portkey.ai/error-library/context-length-exceeded-error-13710000"),
    Case("anthropic via vertex", 413, {"error": {"message": '{"type":"error","error":{"type":"invalid_request_error","message":"Prompt is too long"}}', "type": "None", "code": "413"}}, "CONTEXT_WINDOW_EXCEEDED", GH + "anthropics/claude-code/issues/2569"),
    Case("gemini", 400, google("The input token count (2800010) exceeds the maximum number of tokens allowed (1048575).", "INVALID_ARGUMENT", 400), "CONTEXT_WINDOW_EXCEEDED", GH + "BerriAI/litellm/issues/18282"),
    Case("gemini", 400, google("The input token count exceeds the maximum number of tokens allowed (1048576).", "INVALID_ARGUMENT", 400), "CONTEXT_WINDOW_EXCEEDED"),
    Case("litellm proxy", 400, {"error": {"message": "litellm.BadRequestError: AnthropicException - b'{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000, decrease input length or `max_tokens` and try again\"}}'. Received Model Group=anthropic/claude\nAvailable Model Group Fallbacks=None", "type": None, "param": None, "code": "400"}}, "CONTEXT_WINDOW_EXCEEDED", GH + "BrokkAi/brokk-app/issues/540"),
    Case("llama-cpp-python", 400, "Requested tokens exceed context window of 512", "CONTEXT_WINDOW_EXCEEDED", GH + "abetlen/llama-cpp-python/issues/120"),
    Case("llama.cpp, code alone", 400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "x"}}, "CONTEXT_WINDOW_EXCEEDED", GH + "DraconDev/pi-goal-list-loop-audit/pull/48"),
    Case("vllm", 400, "This model's maximum context length is 4096 tokens. However, you requested 4726 tokens (3726 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.", "CONTEXT_WINDOW_EXCEEDED", GH + "vllm-project/vllm/pull/965"),
    Case("openai", 400, "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 5 for the completion). Please reduce your prompt; or completion length.", "CONTEXT_WINDOW_EXCEEDED", GH + "pkdone/paul-genai-test-tools-ts"),
    Case("openai, code alone", 400, {"error": {"message": "Your input exceeds it.", "code": "context_length_exceeded"}}, "CONTEXT_WINDOW_EXCEEDED", GH + "letta-ai/letta"),
    Case("openai in a stream", None, {"type": "error", "code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}, "CONTEXT_WINDOW_EXCEEDED", GH + "letta-ai/letta"),
    Case("openrouter", 400, wrapped('{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens.","code":"context_length_exceeded"}}'), "CONTEXT_WINDOW_EXCEEDED", GH + "letta-ai/letta"),
    Case("openclaw's list", 400, "Model context window is 128k tokens, you requested 256k tokens", "CONTEXT_WINDOW_EXCEEDED", GH + "zimmra/openclaw"),
    Case("openclaw's list", 400, "Context window exceeded: requested 12000 tokens", "CONTEXT_WINDOW_EXCEEDED", GH + "zimmra/openclaw"),
    Case("openclaw's list", 400, "Prompt too large for this model", "CONTEXT_WINDOW_EXCEEDED", GH + "zimmra/openclaw"),
    Case("anyscale", 400, "Input too long: received 7226 tokens, but the maximum input length is 4096 tokens", "CONTEXT_WINDOW_EXCEEDED", "https://portkey.ai/error-library/input-length-error-10000"),
    Case("pieces", 400, "This message exceeded the context limit for this LLM. Please shorten your prompt.", "CONTEXT_WINDOW_EXCEEDED", GH + "pieces-app/support/issues/487"),
    Case("vllm, a window filled by the prompt alone", 400, "max_tokens must be at least 1, got -1234.", "CONTEXT_WINDOW_EXCEEDED", GH + "xusenlinzy/api-for-open-llm/pull/237"),
]  # fmt: skip

NO_OVERFLOW = [
    Case("groq", 400, "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the `context_window` for this model", "OUTPUT_LIMIT", GH + "anomalyco/opencode/issues/1000"),
    Case("bedrock", 400, "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.", "OUTPUT_LIMIT", GH + "RooCodeInc/Roo-Code/issues/248"),
    Case("vllm, a short prompt and too much output", 400, "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.", "OUTPUT_LIMIT", GH + "ogx-ai/ogx/issues/4534"),
    Case("anthropic, a short prompt and too much output", 400, "input length and `max_tokens` exceed context limit: 12000 + 195000 > 200000, decrease input length or `max_tokens` and try again", "OUTPUT_LIMIT", GH + "openclaw/openclaw/pull/20539"),
    Case("vllm", 400, "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 32768 tokens and your request has 100 input tokens (32768 > 32768 - 100).", "OUTPUT_LIMIT"),
    Case("groq", 413, "Request too large for model `moonshotai/kimi-k2-instruct` in organization `org_X` service tier `on_demand` on tokens per minute (TPM): Limit 10000, Requested 15088, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today", "RATE_LIMIT", GH + "cline/cline/issues/4971"),
    Case("bedrock", 429, {"message": "Too many tokens, please wait before trying again.", "__type": "ThrottlingException"}, "RATE_LIMIT", GH + "RooCodeInc/Roo-Code/issues/5050"),
    Case("bedrock through a gateway", 400, {"error": {"message": "Too many tokens, please wait before trying again."}}, "RATE_LIMIT", GH + "anthropics/claude-code/issues/1466"),
    Case("openclaw's list", 400, "input token limit exceeded for this minute", "RATE_LIMIT", GH + "maxtongwang/openclaw"),
    Case("moonshot", 429, "request reached organization TPD rate limit, current: 1506556, limit: 1500000", "RATE_LIMIT", GH + "zimmra/openclaw"),
    Case("openrouter", 402, "Prompt tokens limit exceeded: 230799 > 91442. To increase, visit https://openrouter.ai/settings/keys and create a key with a higher monthly limit", "QUOTA", GH + "anomalyco/opencode/issues/12219"),
    Case("openai, a long description of a tool", 400, {"error": {"message": "Invalid 'tools[2].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1655 instead.", "param": "tools[2].function.description", "code": "string_above_max_length"}}, "INVALID_TOOL_SCHEMA", GH + "OpenHands/OpenHands/issues/4803"),
    Case("groq, too many tools", 400, "'tools' : maximum number of items is 128", "INVALID_TOOL_SCHEMA", GH + "HunorLaczko/ha-groq-cloud-api/issues/25"),
    Case("a go gateway", 502, "context deadline exceeded", "TIMEOUT"),
    Case("a go gateway in a stream", None, {"error": "context deadline exceeded"}, "TIMEOUT"),
    Case("an agent's own minimum", 400, "Model context window too small (minimum is 128k tokens)", "INVALID_REQUEST", GH + "zimmra/openclaw"),
    Case("a body by its size", 413, "Maximum content size limit (26214400) exceeded (26417812 bytes read)", "REQUEST_TOO_LARGE", "https://portkey.ai/error-library/content-size-limit-error-10534"),
    Case("openai, a long id", 400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 43 instead.", "INVALID_STRUCTURE", GH + "vercel/ai/issues/5171"),
    Case("anthropic, thinking", 400, "`max_tokens` must be greater than `thinking.budget_tokens`.", "INVALID_REQUEST"),
]  # fmt: skip

STRUCTURE = [
    Case("openai, azure", 400, {"error": {"message": "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (request id: 1)", "param": "messages.[3].role"}}, "INVALID_STRUCTURE", GH + "miurla/morphic/issues/136"),
    Case("dashscope", 400, '<400> InternalError.Algo.InvalidParameter: messages with role "tool" must be a response to a preceeding message with "tool_calls".', "INVALID_STRUCTURE", GH + "QwenLM/qwen-code/issues/2360"),
    Case("deepseek", 400, "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'", "INVALID_STRUCTURE", GH + "itmisx/deepx-code/issues/94"),
    Case("bedrock", 400, "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_X", "INVALID_STRUCTURE", GH + "camel-ai/camel/issues/3954"),
    Case("bedrock", 400, "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.", "INVALID_STRUCTURE", GH + "strands-agents/harness-sdk/issues/1435"),
    Case("bedrock", 400, "The content field at messages.4.content.0.toolResult cannot be empty when status value is error.", "INVALID_STRUCTURE", GH + "aws-samples/sample-multi-agent-orchestration-chat-on-agentcore/issues/15"),
    Case("bedrock", 400, "The toolConfig field must be defined when using toolUse and toolResult content blocks.", "INVALID_STRUCTURE", GH + "vxcontrol/pentagi/pull/196"),
    Case("anthropic", 400, "Requests which include `tool_use` or `tool_result` blocks must define tools.", "INVALID_STRUCTURE", GH + "BerriAI/litellm/pull/31400"),
    Case("litellm proxy", 400, "litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified. Pass `tools=` param OR set `litellm.modify_params = True` // `litellm_settings::modify_params: True` to add dummy tool to the request.", "INVALID_STRUCTURE", GH + "BerriAI/litellm/issues/40735"),
    Case("a gateway before bedrock", 500, "ValidationException: The toolConfig field must be defined when using the toolUse and toolResult content blocks", "INVALID_STRUCTURE", GH + "aws-samples/bedrock-access-gateway/pull/239"),
    Case("bedrock", 400, "The model returned the following errors: messages.48: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks.", "INVALID_STRUCTURE", GH + "langchain-ai/langchain-aws/issues/451"),
    Case("litellm proxy", 400, {"error": {"message": "litellm.BadRequestError: BedrockException - {\"message\":\"messages.32.content: Conversation blocks and tool result blocks cannot be provided in the same turn.\"}\n. Enable 'litellm.modify_params=True'"}}, "INVALID_STRUCTURE", GH + "OpenHands/OpenHands/issues/5350"),
    Case("anthropic", 400, "messages.1.content.1: `tool_use` ids must be unique", "INVALID_STRUCTURE", GH + "anthropics/claude-code/issues/20901"),
    Case("anthropic", 400, "messages.3.content.8: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.", "INVALID_STRUCTURE", GH + "anthropics/claude-code/issues/63284"),
    Case("anthropic via vertex", 400, google('{"type":"error","error":{"type":"invalid_request_error","message":"messages.129.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`."},"request_id":"req_vrtx_1"}', "INVALID_ARGUMENT", 400), "INVALID_STRUCTURE", GH + "lbjlaq/Antigravity-Manager/issues/139"),
    Case("gemini", 400, google("* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n", "INVALID_ARGUMENT", 400), "INVALID_STRUCTURE", GH + "egoist/chatwise-releases/issues/250"),
    Case("gemini", 400, google("Please use a valid role: user, model.", "INVALID_ARGUMENT", 400), "INVALID_STRUCTURE", GH + "the-open-agent/openagent/issues/1666"),
    Case("gemini", 400, google("Role 'function' is not supported. Please use a valid role: SYSTEM, USER, ASSISTANT, MODEL", "INVALID_ARGUMENT", 400), "INVALID_STRUCTURE", GH + "sashiko-dev/sashiko/pull/500"),
    Case("gemini", 400, google("Please ensure that function call turn contains at least one function_call part which can not be mixed with function_response parts.", "INVALID_ARGUMENT", 400), "INVALID_STRUCTURE", GH + "googleapis/python-genai/issues/81"),
    Case("gemini", 400, google("Invalid JSON payload received. Unknown name \"id\" at 'contents[1].parts[0]': Cannot find field.", "INVALID_ARGUMENT", 400), "INVALID_STRUCTURE", GH + "Chevey339/kelivo/issues/543"),
    Case("mistral", 400, {"object": "error", "message": "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", "type": "invalid_request_error"}, "INVALID_STRUCTURE", GH + "NEKOparapa/AiNiee/issues/641"),
    Case("mistral, code alone", 400, {"object": "error", "message": "x", "type": "invalid_request_message_order", "code": "3230"}, "INVALID_STRUCTURE", GH + "datapizza-labs/datapizza-ai/issues/98"),
    Case("mistral via openrouter", 400, wrapped('{"object":"error","message":"Unexpected role \'user\' after role \'tool\'","code":"3230"}'), "INVALID_STRUCTURE", GH + "charmbracelet/crush/issues/279"),
    Case("openai-responses", 400, "The encrypted content gAAA...wXBV could not be verified.", "INVALID_STRUCTURE", GH + "openai/openai-agents-python/issues/2063"),
    Case("openai-responses, code alone", 400, {"error": {"message": "x", "code": "invalid_encrypted_content"}}, "INVALID_STRUCTURE", GH + "continuedev/continue/issues/10643"),
    Case("openai-responses", 400, "Duplicate item found with id rs_X. Remove duplicate items from your input and try again.", "INVALID_STRUCTURE", GH + "vercel/ai/issues/7883"),
    Case("openai-responses", 400, "Duplicate 'call_id': undefined", "INVALID_STRUCTURE", GH + "earendil-works/pi/issues/9057"),
    Case("openai-responses", 400, "Item with id 'rs_X' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", "INVALID_STRUCTURE", GH + "maximhq/bifrost/issues/5410"),
    Case("openai-responses", 400, "Item 'fc_X' of type 'function_call' was provided without its required 'reasoning' item: 'rs_X'.", "INVALID_STRUCTURE", GH + "continuedev/continue/pull/11785"),
    Case("openai-responses", 400, "Invalid 'input[3].id': 'msg_X'. Expected an ID that begins with 'fc'.", "INVALID_STRUCTURE", GH + "continuedev/continue/pull/11785"),
    Case("llama.cpp", 400, "Output of tool call should be 'Input text'", "INVALID_STRUCTURE", GH + "ggml-org/llama.cpp/issues/23542"),
]  # fmt: skip

LIMITS = [
    Case("openrouter", 429, {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "z-ai/glm is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits", "provider_name": "P"}}}, "RATE_LIMIT", GH + "open-webui/computer/issues/293"),
    Case("openrouter in a 200 answer", 200, {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "error code: 1015"}}}, "RATE_LIMIT", GH + "BerriAI/litellm/issues/8448"),
    Case("a gateway", 429, {"code": "429", "message": "Error from provider (Xiaomi): Too many requests", "type": "limitation"}, "RATE_LIMIT", GH + "anomalyco/opencode/issues/29912"),
    Case("nim", 429, {"status": 429, "title": "Too Many Requests"}, "RATE_LIMIT", GH + "Alishahryar1/free-claude-code/issues/1228"),
    Case("moonshot", 429, {"error": {"message": "Your account reached max request: 3, please try again after 1 seconds", "type": "rate_limit_reached_error"}}, "RATE_LIMIT", GH + "harry0703/MoneyPrinterTurbo/issues/339"),
    Case("vertex", 429, [{"error": {"code": 429, "message": "Quota exceeded for aiplatform.googleapis.com/online_prediction_requests_per_base_model with base model: anthropic-claude. Please submit a quota increase request.", "status": "RESOURCE_EXHAUSTED"}}], "RATE_LIMIT", GH + "cline/cline/issues/651"),
    Case("vertex", 429, google("Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.", "RESOURCE_EXHAUSTED", 429), "RATE_LIMIT", GH + "google-gemini/gemini-cli/issues/15911"),
    Case("gemini, per minute", 429, google(EXCEEDED, "RESOURCE_EXHAUSTED", 429, quota_failure("GenerateContentInputTokensPerModelPerMinute-FreeTier"), RETRY_INFO), "RATE_LIMIT", GH + "RooCodeInc/Roo-Code/issues/3883"),
    Case("gemini, per minute, as text in text", 429, {"error": {"message": json.dumps(google(EXCEEDED, "RESOURCE_EXHAUSTED", 429, RETRY_INFO)), "code": 429, "status": "Too Many Requests"}}, "RATE_LIMIT", GH + "RooCodeInc/Roo-Code/issues/3883"),
    Case("gemini, per day", 429, google(EXCEEDED, "RESOURCE_EXHAUSTED", 429, quota_failure("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), RETRY_INFO), "QUOTA", GH + "ogkalu2/comic-translate/issues/403"),
    Case("gemini code assist, per day", 429, google("Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'Gemini 2.5 Pro Requests per day per user per tier' of service", "RESOURCE_EXHAUSTED", 429), "QUOTA", GH + "google-gemini/gemini-cli/issues/10925"),
    Case("openai", 429, {"error": {"message": EXCEEDED, "type": "insufficient_quota", "code": "insufficient_quota"}}, "QUOTA", GH + "ChatGPTNextWeb/NextChat/issues/449"),
    Case("one-api", 403, {"error": {"message": "user quota is not enough (request id: 1)", "type": "v_api_error", "code": "insufficient_user_quota"}}, "QUOTA", GH + "popjane/free_chatgpt_api/issues/76"),
    Case("dashscope", 400, {"statusCode": 400, "message": "Access denied, please make sure your account is in good standing.", "code": "Arrearage"}, "QUOTA", GH + "tencentmusic/supersonic/issues/1572"),
    Case("dashscope, text alone", 400, "Access denied, please make sure your account is in good standing.", "QUOTA", GH + "QwenLM/Qwen/issues/1414"),
    Case("moonshot", 403, {"error": {"message": "Your account <xx> is not active, organization <xx> exceeded current quota, please check your plan and billing details", "type": "exceeded_current_quota_error"}}, "QUOTA", GH + "MoonshotAI/Kimi-K2/issues/5"),
    Case("openrouter", 402, {"error": {"message": "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 3395.", "code": 402}}, "QUOTA", GH + "newo-ether/Agora/issues/8"),
    Case("deepseek", 402, "Insufficient Balance", "QUOTA", GH + "continuedev/continue/issues/9942"),
    Case("moonshot", 429, {"error": {"message": "The engine is currently overloaded, please try again later", "type": "engine_overloaded_error"}}, "OVERLOADED", GH + "MoonshotAI/MoonshotAI-Cookbook/issues/16"),
    Case("vertex", 429, google("Unable to submit request because the service is temporarily out of capacity. Try again later.", "RESOURCE_EXHAUSTED", 429), "OVERLOADED", GH + "googleapis/google-cloud-java/issues/11195"),
    Case("a gateway", 503, "Inference is temporarily unavailable", "OVERLOADED", GH + "anomalyco/opencode/issues/34886"),
]  # fmt: skip

REFUSALS = [
    Case("azure", 400, {"error": {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.", "type": None, "param": "prompt", "code": "content_filter", "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "CONTENT_FILTER", GH + "stanford-crfm/helm/pull/3327"),
    Case("azure via litellm", 400, {"error": {"message": "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The response was filtered due to the prompt triggering Azure OpenAI's content management policy.\nmodel=azure/x. content_policy_fallback=None.", "code": "400"}}, "CONTENT_FILTER", GH + "BerriAI/litellm/pull/16231"),
    Case("deepseek", 400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error", "code": "invalid_request_error"}}, "CONTENT_FILTER", GH + "666ghj/BettaFish/issues/108"),
    Case("deepseek", 400, {"detail": "Content Exists Risk"}, "CONTENT_FILTER", GH + "deepseek-ai/DeepSeek-V2/issues/30"),
    Case("moonshot", 400, {"error": {"code": 400, "message": "The request was rejected because it was considered high risk", "param": "prompt", "type": "content_filter"}}, "CONTENT_FILTER", GH + "666ghj/BettaFish/issues/228"),
    Case("anthropic", 400, "Could not process image", "UNSUPPORTED_CONTENT", GH + "anthropics/claude-code/issues/60920"),
    Case("anthropic", 400, "messages.18.content.1.image.source.base64.data: Image does not match the provided media type image/png", "UNSUPPORTED_CONTENT", GH + "anthropics/claude-code/issues/13131"),
    Case("openai", 400, "You uploaded an unsupported image. Please make sure your image is below 20 MB in size and is of one the following formats: ['png', 'jpeg', 'gif', 'webp'].", "UNSUPPORTED_CONTENT", GH + "jam3scampbell/ProctorAI/issues/7"),
    Case("dashscope", 400, "<400> InternalError.Algo.InvalidParameter: The image length and width do not meet the model restrictions. [height:1 or width:1 must be larger than 10]", "UNSUPPORTED_CONTENT", GH + "QwenLM/qwen-code/issues/2505"),
    Case("anthropic", 400, "tools: Tool names must be unique.", "INVALID_TOOL_SCHEMA", GH + "eclipse-theia/theia/issues/16122"),
    Case("anthropic", 400, "tools.12.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use", "INVALID_TOOL_SCHEMA", GH + "anthropics/claude-code/issues/63673"),
    Case("moonshot", 400, "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.x': when using anyOf, type should be defined in anyOf items instead of the parent schema>", "INVALID_TOOL_SCHEMA", GH + "yilewang/llm-for-zotero/issues/416"),
    Case("gemini", 400, google("Invalid JSON payload received. Unknown name \"$schema\" at 'request.tools[0].function_declarations[0].parameters': Cannot find field.", "INVALID_ARGUMENT", 400), "INVALID_TOOL_SCHEMA", GH + "router-for-me/CLIProxyAPI/issues/97"),
    Case("gemini", 400, google("Invalid value at 'tools[0].function_declarations[1].parameters.properties[0].value.type' (type.googleapis.com/google.cloud.aiplatform.v1beta1.Type), \"\"", "INVALID_ARGUMENT", 400), "INVALID_TOOL_SCHEMA", GH + "agno-agi/agno/issues/2649"),
    Case("groq", 400, {"error": {"message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "prompt is too long"}}, "MALFORMED_TOOL_CALL", GH + "groq/groq-typescript/issues/28"),
]  # fmt: skip

MODELS = [
    Case("openrouter", 400, {"error": {"message": "deepseek-chat is not a valid model ID", "code": 400}, "user_id": "u"}, "MODEL_NOT_FOUND", GH + "MuiseDestiny/zotero-gpt/issues/483"),
    Case("openrouter", 404, {"error": {"message": "No endpoints found for this model.", "code": 404}}, "MODEL_NOT_FOUND", GH + "Aider-AI/aider/issues/2444"),
    Case("deepseek", 400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error", "code": "invalid_request_error"}}, "MODEL_NOT_FOUND", GH + "deepwn/addi/issues/13"),
    Case("groq", 400, {"error": {"message": "The model `x` has been decommissioned and is no longer supported.", "code": "model_decommissioned"}}, "MODEL_NOT_FOUND", GH + "cooneycw/claude-power-pack/issues/328"),
    Case("bedrock", 400, "Invocation of model ID anthropic.claude-x with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.", "MODEL_NOT_FOUND", GH + "anthropics/claude-code/issues/1466"),
    Case("zai", 400, {"error": {"message": 'Provider error 400: {"error":{"code":"1211","message":"Unknown Model, please check the model code.\\n"}}', "type": "upstream_error"}}, "MODEL_NOT_FOUND", GH + "lidge-jun/opencodex/issues/41"),
    Case("the seeds' negative case", 400, "Not supported model mimo-v2.5-pro-ultraspeed", "MODEL_NOT_FOUND"),
    Case("lm studio", 400, {"error": "Model is unloaded."}, "MODEL_NOT_FOUND", GH + "trvon/agent"),
    Case("lm studio", 400, "Model does not support images. Please use a model that does.", "MODEL_NOT_FOUND", GH + "lmstudio-ai/lmstudio-bug-tracker/issues/362"),
    Case("llama.cpp", 500, {"error": {"code": 500, "message": "image input is not supported by this server", "type": "server_error"}}, "MODEL_NOT_FOUND", GH + "ggml-org/llama.cpp/issues/13566"),
    Case("llama.cpp", 500, {"error": {"code": 500, "message": 'Failed to parse messages: Unsupported content part type: "image_url"; messages = [{"role": "user", "content": "unexpected role, prompt is too long"}]'}}, "MODEL_NOT_FOUND", GH + "ggml-org/llama.cpp/issues/12947"),
]  # fmt: skip

ALL = [*OVERFLOW, *NO_OVERFLOW, *STRUCTURE, *LIMITS, *REFUSALS, *MODELS]


def name(case: Case) -> str:
    said = case.body if isinstance(case.body, str) else json.dumps(case.body)
    return f"{case.provider}, {case.status}: {said[:60]}"


@pytest.mark.parametrize("case", ALL, ids=map(name, ALL))
def test_a_reported_wording_gets_its_code(case: Case) -> None:
    assert classify(case.status, {}, case.body, context_ratio=0.3).code == case.code


@pytest.mark.parametrize("case", NO_OVERFLOW, ids=map(name, NO_OVERFLOW))
def test_a_look_alike_starts_no_compaction_even_with_a_full_window(case: Case) -> None:
    assert classify(case.status, {}, case.body, context_ratio=1.2).recovery != "compact"


@pytest.mark.parametrize("case", OVERFLOW, ids=map(name, OVERFLOW))
def test_a_due_compaction_is_not_hidden_by_an_estimate_that_was_low(case: Case) -> None:
    assert classify(case.status, {}, case.body, context_ratio=0.01).recovery == "compact"
