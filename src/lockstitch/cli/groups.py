"""The command groups ``sessions`` and ``wire``: tables only."""

from typing import Final

from .lazy import Entry, lazy_group

sessions: Final = lazy_group(
    "sessions",
    "Look at, check and continue stored sessions.",
    {
        "list": Entry("sessions_list:list_sessions", "List the stored sessions, newest first."),
        "show": Entry("sessions_show:show", "Show what was said and done in a session."),
        "check": Entry("sessions_check:check", "Report damage without changing anything."),
        "search": Entry("sessions_search:search", "Find where words were said."),
        "fork": Entry("sessions_keep:fork_session", "Begin a session with what another holds."),
        "export": Entry("sessions_keep:export", "Write a session to one file."),
        "import": Entry("sessions_keep:import_bundle", "Make a session of such a file."),
        "rm": Entry("sessions_keep:rm", "Move sessions to the trash."),
        "repair": Entry("sessions_keep:repair_sessions", "Make damaged logs sound, behind a copy."),
    },
)

config: Final = lazy_group(
    "config",
    "See where settings come from; trust a project's file.",
    {
        "show": Entry("config:show", "Show every setting, and where it comes from."),
        "trust": Entry("config:trust", "Take everything from a folder's lockstitch.toml."),
    },
)

wire: Final = lazy_group(
    "wire",
    "Decode, classify, lint and mock provider traffic.",
    {
        "decode": Entry("wire_decode:decode", "Read a raw response body as Lockstitch does."),
        "classify": Entry("wire_classify:classify", "Say what an error response means."),
        "lint": Entry("wire_lint:lint", "Check a request, and mend it with --fix."),
        "gateway": Entry("wire_gateway:gateway", "Run the mock gateway."),
    },
)
