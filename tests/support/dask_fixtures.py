"""Workers of Dask clusters in the tests are forked from a process that has loaded everything."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session")
def forked_workers() -> Iterator[None]:
    """A worker that starts anew imports for seconds, and these tests start and kill a dozen."""
    if find_spec("distributed") is None:
        yield
        return
    import dask
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        # A process has one such server: trials of the reproduction are forked from it, too.
        loaded = ["distributed", "pandas", "fewlabel.chunks.dask_rows", "reproduction.preload"]
        get_mp_context().set_forkserver_preload(loaded)
        yield
