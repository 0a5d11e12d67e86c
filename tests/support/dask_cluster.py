"""A cluster of processes on this machine, for tests."""

from __future__ import annotations

from typing import Any


def cluster(n_workers: int = 2, **options: Any) -> Any:
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        **options,
    )
