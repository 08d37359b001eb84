"""Every input that the fuzzer ever found wrong, and the field cases, through the fuzzer's own check."""

import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))

from target import RECORDED, check, seeds  # noqa: E402  # found by the path above

FINDINGS = {path.name: path.read_bytes() for path in sorted((RECORDED / "fuzz").glob("*")) if path.is_file()}


@pytest.mark.parametrize("name", FINDINGS or [pytest.param("", marks=pytest.mark.skip("none so far"))])
def test_a_finding_stays_fixed(name: str) -> None:
    check(FINDINGS[name])


def test_the_check_holds_for_the_field_cases() -> None:
    for _, data in seeds():
        check(data)
