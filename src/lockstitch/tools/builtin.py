"""The tools that come with Lockstitch."""

from collections.abc import Sequence

from .builtin_fetch import fetch_tool
from .builtin_files import file_tools
from .builtin_search import search_tools
from .builtin_shell import shell_tool
from .contract import Tool


def builtin_tools(*, fetch_allowed: Sequence[str] = ()) -> list[Tool]:
    """read, write, edit, list, glob, grep, shell, fetch, in this order.

    ``fetch_allowed`` names hosts, addresses and networks that fetch may reach although they are not public.
    """
    return [*file_tools(), *search_tools(), shell_tool(), fetch_tool(fetch_allowed)]
