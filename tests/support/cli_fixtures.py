"""The command in real processes, started once for all tests of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cli_tools import Runner


@pytest.fixture(scope="session")
def fewlabel() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()
