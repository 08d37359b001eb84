"""Fixtures of the end-to-end tests: a mock gateway with the answers a test asks for, and the command."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_process import Cli

from lockstitch.testing.gateway import Gateway, running_gateway


@pytest.fixture
def gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    """Plays the answers of ``script_of``; refuses what a strict provider refuses."""
    answers = getattr(request, "param", ["Done."])
    with running_gateway({"answers": answers, "then": {"text": "Nothing more."}}, strict="openai-chat") as it:
        yield it


@pytest.fixture
def cli(tmp_path: Path, gateway: Gateway) -> Cli:
    return Cli(tmp_path, gateway.base_url)
