"""Spans by the GenAI conventions: made only where the program traces, and without contents."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from agent_world import World, calls

pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def provider() -> None:
    """Once for the process: OpenTelemetry takes no second one."""
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(made)


@pytest.fixture
def spans() -> Iterator[Any]:
    EXPORTER.clear()
    yield EXPORTER.get_finished_spans
    EXPORTER.clear()


def tree(spans: Any) -> dict[str, str | None]:
    """Name of each span and of its parent, in the order in which they ended."""
    by_id = {span.context.span_id: span.name for span in spans}
    return {span.name: by_id.get(span.parent.span_id) if span.parent else None for span in spans}


async def test_a_turn_its_attempts_and_its_tools(spans: Any) -> None:
    usage = {"input_tokens": 5, "output_tokens": 3, "cache_read_tokens": 10}
    world = World({**calls("clock", text="secret words"), "usage": usage}, "Noon.")
    await world.run("A secret prompt.")
    ended = spans()
    assert tree(ended) == {
        "chat scripted": "invoke_agent",
        "execute_tool clock": "invoke_agent",
        "invoke_agent": None,
    }
    first = dict(ended[0].attributes)
    assert first == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "generic",
        "gen_ai.request.model": "scripted",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 15,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 10,
        "gen_ai.response.finish_reasons": ("tool_calls",),
    }
    assert "secret" not in str([span.to_json() for span in ended])


async def test_failures_are_errors_of_their_span(spans: Any) -> None:
    failed = {"error": {"message": "bad key"}, "status": 401}
    world = World(failed)
    with pytest.raises(Exception, match="bad key"):
        await world.run()
    errors = {span.name: span.attributes.get("error.type") for span in spans()}
    assert errors == {"chat scripted": "AUTH", "invoke_agent": "failed"}


def test_nothing_is_imported_for_it() -> None:
    program = (
        "import sys; from lockstitch import Agent; "
        "from lockstitch.testing.scripted_model import ScriptedModel; "
        "Agent(ScriptedModel(['x']), store='memory').run_sync('y'); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
