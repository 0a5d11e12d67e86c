"""What every test module shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.support.small_forests import small_forests

pytest_plugins = ["tests.support.cli_fixtures", "tests.support.dask_fixtures"]

settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
# Of a mutant it is enough to know that a test fails, not the smallest example.
settings.register_profile(
    "mutation", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate)
)
settings.register_profile("long", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of chunks fork the workers of their clusters."""
    for item in items:
        if {"tests", "chunks"} <= set(item.path.parts) and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "forked_workers")


@pytest.fixture(scope="module", autouse=True)
def few_trees() -> Iterator[None]:
    """Default forests of few trees: they do all that 200 do, in a fraction of the time."""
    with small_forests():
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with the real data sets; tests that need it are skipped without it."""
    folder = os.environ.get("FEWLABEL_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip(
            "no real data sets: set FEWLABEL_DATA to the folder with vowel.npz and the others"
        )
    return Path(folder)
