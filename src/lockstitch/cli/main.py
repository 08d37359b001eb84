"""The ``lockstitch`` command: which commands there are, and what every error comes to.

Nothing heavy is imported here, so ``--help`` and ``--version`` answer at once (a test lists the modules).
"""

import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

import click

from .. import __version__
from ..schema.errors import ApprovalRequiredError, BudgetError, CallerError, LockstitchError
from . import exit_codes
from .lazy import Entry, LazyGroup

_COMMANDS: Final = {
    "run": Entry("run:run", "Give the agent a task and wait until it is done."),
    "chat": Entry("chat:chat", "Talk with the agent in the terminal."),
    "models": Entry("models:models", "List providers and models, with windows and prices."),
    "config": Entry("groups:config", "See where settings come from; trust a project's file."),
    "sessions": Entry("groups:sessions", "Look at, check and continue stored sessions."),
    "wire": Entry("groups:wire", "Decode, classify, lint and mock provider traffic."),
    "demo": Entry("demo:demo", "See a turn survive a bad gateway and a SIGKILL."),
}

cli = LazyGroup(
    name="lockstitch",
    table=_COMMANDS,
    no_args_is_help=True,
    help="An agent runtime whose sessions cannot be bricked.",
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 approval needed, 4 budget used up, 5 provider gave up, "
    "130 interrupted.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            help="Print the version and exit.",
            callback=lambda ctx, _param, value: _version(ctx) if value else None,
        )
    ],
)


def main() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; its exit code. Errors people can cause are one line on stderr."""
    try:
        code = cli.main(args=list(arguments), prog_name="lockstitch", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return exit_codes.USAGE
    except click.ClickException as error:
        return _told(error.format_message(), exit_codes.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _told("interrupted", exit_codes.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output left, as `head` does. Python would complain again while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.FAILED
    except LockstitchError as error:
        return _told(str(error), _code(error))
    return code if isinstance(code, int) else exit_codes.DONE


def _code(error: LockstitchError) -> int:
    match error:
        case CallerError():
            return exit_codes.USAGE
        case ApprovalRequiredError():
            return exit_codes.APPROVAL
        case BudgetError():
            return exit_codes.BUDGET
        case _:
            return exit_codes.FAILED


def _told(message: str, code: int) -> int:
    from .lines import tell

    tell(f"lockstitch: {message}")
    return code


def _version(ctx: click.Context) -> NoReturn:
    click.echo(f"lockstitch {__version__}")
    ctx.exit()
