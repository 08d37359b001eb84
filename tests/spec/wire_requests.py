"""Strategies for plain requests as other agents keep them: nearly right, with anything in any place."""

from typing import Any

from histories import NASTY_ARGUMENTS, NASTY_IDS, NASTY_NAMES, NASTY_TEXTS
from hypothesis import strategies as st

junk = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(NASTY_TEXTS),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["type", "text", "id", "x"]), inner, max_size=2),
    ),
    max_leaves=4,
)  # fmt: skip
"""Any JSON at all, where a value of some type was due."""


def mostly(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 9).flatmap(lambda number: junk if number == 0 else values)


def record(required: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """An object with these fields, each of which may hold junk or be missing."""
    fields = {key: mostly(value) for key, value in {**required, **(optional or {})}.items()}
    return mostly(
        st.one_of(
            st.fixed_dictionaries({key: fields[key] for key in required}, optional={
                key: fields[key] for key in optional or {}
            }),
            st.fixed_dictionaries({}, optional=fields),
        )
    )  # fmt: skip


texts = st.sampled_from([*NASTY_TEXTS, "hello", "q"])
ids = st.sampled_from([*NASTY_IDS, "c1", "c2"])
names = st.sampled_from(["read", "write", *NASTY_NAMES])
arguments = st.sampled_from(NASTY_ARGUMENTS)
objects = st.sampled_from([{}, {"a": 1}, {"a": "\ud800"}, {"a": {"b": [None]}}])
data_urls = st.sampled_from(
    ["data:image/png;base64,aGk=", "https://example.com/a.png", "data:image/tiff;base64,aGk=", "", "data:,x"]
)
marks = {"cache_control": st.just({"type": "ephemeral"})}

chat_part = st.one_of(
    record({"type": st.just("text"), "text": texts}, marks),
    record({"type": st.just("image_url"), "image_url": record({"url": data_urls})}),
    record({"type": st.just("thinking"), "thinking": texts}, {"signature": texts, "model": st.just("other")}),
    record({"type": st.sampled_from(["input_audio", "file", "refusal", "nonsense"])}, {"file": objects}),
)
chat_content = st.one_of(texts, st.none(), st.lists(chat_part, max_size=3))
chat_call = record(
    {"id": ids, "type": st.just("function"), "function": record({"name": names, "arguments": arguments})},
    {"name": names, "arguments": arguments, "index": st.just(0)},
)
chat_message = st.one_of(
    record({"role": st.just("user"), "content": chat_content}, {"name": names}),
    record(
        {"role": st.just("assistant"), "content": chat_content},
        {"tool_calls": st.lists(chat_call, max_size=3), "reasoning_content": texts, "reasoning": texts},
    ),
    record(
        {"role": st.just("tool"), "tool_call_id": ids, "content": chat_content}, {"is_error": st.booleans()}
    ),
    record({"role": st.sampled_from(["system", "developer", "function", "robot"]), "content": chat_content}),
)
chat_tool = record(
    {
        "type": st.just("function"),
        "function": record(
            {"name": names},
            {"description": texts, "parameters": st.sampled_from([{}, {"type": "object"}, 7])},
        ),
    }
)
chat_requests = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": mostly(st.lists(chat_message, max_size=8))},
    optional={
        "tools": mostly(st.lists(chat_tool, max_size=2)),
        "tool_choice": mostly(st.sampled_from(["auto", "required"])),
        "temperature": mostly(st.just(0.5)),
        "stop": mostly(texts),
        "thinking": mostly(st.just({"type": "enabled"})),
        "max_tokens": mostly(st.just(10)),
    },
)

anthropic_source = record(
    {"type": st.just("base64"), "media_type": st.just("image/png"), "data": st.just("aGk=")}
)
anthropic_block = st.one_of(
    record({"type": st.just("text"), "text": texts}, marks),
    record({"type": st.just("image"), "source": anthropic_source}),
    record({"type": st.just("tool_use"), "id": ids, "name": names, "input": objects}, marks),
    record(
        {"type": st.just("tool_result"), "tool_use_id": ids},
        {"content": st.one_of(texts, st.lists(record({"type": st.just("text"), "text": texts}), max_size=2))},
    ),
    record(
        {"type": st.just("thinking"), "thinking": texts}, {"signature": st.just("sig"), "model": st.just("m")}
    ),
    record({"type": st.just("redacted_thinking"), "data": texts}),
    record({"type": st.sampled_from(["document", "server_tool_use", "web_search_tool_result"])}, {"id": ids}),
)  # fmt: skip
anthropic_message = record(
    {
        "role": st.sampled_from(["user", "assistant", "user", "assistant", "system", "tool"]),
        "content": st.one_of(texts, st.lists(anthropic_block, max_size=4)),
    }
)
anthropic_requests = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": mostly(st.lists(anthropic_message, max_size=8))},
    optional={
        "system": mostly(st.one_of(texts, st.lists(record({"type": st.just("text"), "text": texts}, marks)))),
        "tools": mostly(
            st.lists(
                record({"name": names, "input_schema": st.sampled_from([{}, {"type": "object"}, 7])}, marks)
            )
        ),
        "tool_choice": mostly(st.just({"type": "auto"})),
        "thinking": mostly(st.just({"type": "enabled", "budget_tokens": 1024})),
        "max_tokens": mostly(st.just(10)),
    },
)

responses_part = st.one_of(
    record({"type": st.sampled_from(["input_text", "output_text"]), "text": texts}),
    record({"type": st.just("input_image"), "image_url": data_urls}),
    record({"type": st.sampled_from(["refusal", "input_file"])}, {"refusal": texts}),
)
responses_item = st.one_of(
    record(
        {
            "type": st.just("message"),
            "role": st.sampled_from(["user", "assistant", "developer", "system", "robot"]),
            "content": st.one_of(texts, st.lists(responses_part, max_size=2)),
        },
        {"id": st.sampled_from(["msg_1", ""])},
    ),
    record(
        {"type": st.just("function_call"), "call_id": ids, "name": names, "arguments": arguments},
        {"id": st.sampled_from(["fc_1", "msg_1"])},
    ),
    record({"type": st.just("function_call_output"), "call_id": ids, "output": texts}),
    record(
        {"type": st.just("reasoning"), "summary": st.just([])},
        {"id": st.just("rs_1"), "encrypted_content": st.just("enc"), "content": st.lists(responses_part)},
    ),
    record({"type": st.sampled_from(["web_search_call", "item_reference", "nonsense"])}, {"id": ids}),
)
responses_requests = st.fixed_dictionaries(
    {"model": st.just("m"), "input": mostly(st.one_of(texts, st.lists(responses_item, max_size=10)))},
    optional={
        "store": mostly(st.booleans()),
        "instructions": mostly(texts),
        "tools": mostly(
            st.lists(record({"type": st.just("function"), "name": names}, {"parameters": objects}))
        ),
        "tool_choice": mostly(st.sampled_from(["auto", "required"])),
    },
)

gemini_part = st.one_of(
    record({"text": texts}, {"thought": st.just(True), "thoughtSignature": st.just("sig")}),
    record(
        {"functionCall": record({"name": names, "args": objects}, {"id": ids})}, {"thoughtSignature": texts}
    ),
    record({"functionResponse": record({"name": names, "response": objects}, {"id": ids})}),
    record({"function_response": record({"name": names, "response": objects})}),
    record({"inlineData": record({"mimeType": st.just("image/png"), "data": st.just("aGk=")})}),
    record({"fileData": record({"mimeType": st.just("image/png"), "fileUri": data_urls})}),
)
gemini_requests = st.fixed_dictionaries(
    {
        "contents": mostly(
            st.lists(
                record(
                    {"role": st.sampled_from(["user", "model"]), "parts": st.lists(gemini_part, max_size=3)}
                ),
                max_size=8,
            )
        )
    },
    optional={
        "model": st.sampled_from(["gemini-2.5-pro", "gemini-3-pro"]),
        "systemInstruction": mostly(st.just({"parts": [{"text": "be kind"}, {"text": " "}]})),
        "tools": mostly(
            st.just([{"functionDeclarations": [{"name": "read"}, {"name": "read"}, {"name": "bad name"}]}])
        ),
    },
)

REQUESTS = {
    "openai-chat": chat_requests,
    "anthropic-messages": anthropic_requests,
    "openai-responses": responses_requests,
    "gemini": gemini_requests,
}
