"""The tools that come with Lockstitch."""

from .builtin_files import file_tools
from .builtin_search import search_tools
from .builtin_shell import shell_tool
from .contract import Tool


def builtin_tools() -> list[Tool]:
    """read, write, edit, list, glob, grep, shell, in this order."""
    return [*file_tools(), *search_tools(), shell_tool()]
