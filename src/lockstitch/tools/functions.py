"""``@tool``: a Tool made of a Python function; its schema once, its conversion and call for every run."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, overload

from lockstitch.schema.errors import CallerError
from lockstitch.schema.messages import ToolSpec

from . import arguments as argument_conversion
from .contract import DEFAULT_RESULT_MAX_CHARS, DEFAULT_TIMEOUT_S, Needs, Tool, ToolContext, ToolOutput
from .docstring import parse
from .output import to_output
from .schema import describe, resolved_hints
from .worker import in_thread


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    needs: Needs = "nothing",
    result_max_chars: int = DEFAULT_RESULT_MAX_CHARS,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    timeout_s: float | None = DEFAULT_TIMEOUT_S,
    needs: Needs = "nothing",
    result_max_chars: int = DEFAULT_RESULT_MAX_CHARS,
) -> Any:
    """Make a Tool of a function; used bare (``@tool``) or with options (``@tool(parallel=True)``).

    The parameters' annotations become the JSON Schema, the docstring the description. A parameter annotated
    ``ToolContext`` is injected. A sync function runs in a worker thread of its own. What it returns is
    shown to the model: text, Image and ToolOutput as they are, None as ``(no output)``, all else as JSON.
    Raises CallerError for a signature that no schema can describe.
    """

    def decorate(target: Callable[..., Any]) -> Tool:
        return _make_tool(
            target,
            name=name,
            description=description,
            parallel=parallel,
            timeout_s=timeout_s,
            needs=needs,
            result_max_chars=result_max_chars,
        )

    return decorate if function is None else decorate(function)


def _make_tool(
    function: Callable[..., Any],
    *,
    name: str | None,
    description: str | None,
    parallel: bool,
    timeout_s: float | None,
    needs: Needs,
    result_max_chars: int,
) -> Tool:
    """See ``tool``. Raises CallerError for what is no function or has no schema."""
    if isinstance(function, Tool):
        raise CallerError(f"{function.name} is a tool already")
    if not callable(function):
        raise CallerError(f"@tool needs a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CallerError("@tool needs a function that returns; to show progress call context.progress")
    own_name: str = name or getattr(function, "__name__", "") or type(function).__name__
    owner = f"tool {own_name}"
    hints = resolved_hints(function, owner)
    signature = dict(inspect.signature(function).parameters)
    context_names = [key for key in signature if _is_context(hints.get(key))]
    for key in context_names:
        del signature[key]
    documented = parse(inspect.getdoc(function))
    parameters, schema = describe(signature, hints, documented, owner=owner)
    for parameter in parameters:
        argument_conversion.check_supported(parameter, owner)
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object whose __call__ is async counts too
    )

    async def invoke(arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        keywords = argument_conversion.convert(arguments, parameters, schema, tool=own_name)
        keywords.update(dict.fromkeys(context_names, context))
        if is_async:
            return to_output(await function(**keywords))

        def call() -> Any:
            value = function(**keywords)
            return value if inspect.isawaitable(value) else to_output(value)

        def late(value: Any) -> None:
            if isinstance(value, ToolOutput):
                context.so_far(value)

        output = await in_thread(call, stopping=context.stopping, late=late, name=own_name)
        # a sync wrapper around an async function gives something to await, which belongs to the loop
        return to_output(await output) if inspect.isawaitable(output) else output

    return Tool(
        spec=ToolSpec(own_name, description or documented.description or own_name, schema),
        invoke=invoke,
        parallel=parallel,
        timeout_s=timeout_s,
        needs=needs,
        result_max_chars=result_max_chars,
        function=function,
    )


def _is_context(hint: Any) -> bool:
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return hint is ToolContext or (type(None) in get_args(hint) and ToolContext in get_args(hint))
