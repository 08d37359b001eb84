"""``lockstitch wire gateway``: the mock gateway as a process of its own."""

import asyncio
import json
import signal
import sys

import click

from ..schema.errors import CallerError
from ..testing.gateway import Gateway
from ..testing.strict import CHECKERS, WORDINGS, Wording


@click.command("gateway")
@click.option("--script", "path", required=True, metavar="FILE", help="What to answer; see docs/gateway.md.")
@click.option("--port", default=0, show_default="a free one", type=click.IntRange(0, 65535))
@click.option("--strict", type=click.Choice(sorted(CHECKERS)), help="Refuse this dialect's invalid requests.")
@click.option(
    "--wording",
    default="provider",
    show_default=True,
    type=click.Choice(list(WORDINGS)),
    help="How a refusal reads.",
)
@click.option("--window", type=click.IntRange(1), metavar="N", help="Refuse prompts of more than N tokens.")
def gateway(path: str, port: int, strict: str | None, wording: Wording, window: int | None) -> None:
    """Play scripted answers over HTTP on loopback until interrupted.

    Prints one line of JSON when it listens: {"base_url": ..., "port": ...}.
    """
    try:
        server = Gateway(path, strict=strict, wording=wording, window=window, port=port)
        asyncio.run(_serve(server))
    except CallerError as error:
        click.echo(f"lockstitch: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:  # where the loop takes no signal handlers
        pass


async def _serve(server: Gateway) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:  # Windows: KeyboardInterrupt ends it instead
            break
    async with server:
        listening = {"v": 1, "base_url": server.base_url, "url": server.url, "port": server.port}
        click.echo(json.dumps(listening))
        click.echo(f"gateway: {server.url}, received requests at {server.url}/requests", err=True)
        await stop.wait()
    click.echo(
        f"gateway: stopped after {len(server.requests)} requests, {server.left} answers left", err=True
    )
