"""What goes wrong on a Dask cluster, in the words of someone who runs a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fewlabel.chunks.source import unreadable


class NoWorkersError(RuntimeError):
    """The cluster has lost its last worker."""


class VersionError(RuntimeError):
    """A worker has other versions of packages than this process."""


def versions() -> dict[str, str]:
    """Versions of the packages whose objects travel between processes."""
    import numpy
    import sklearn

    import fewlabel

    return {
        "fewlabel": fewlabel.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": numpy.__version__,
    }


def check_versions(expected: dict[str, str]) -> None:
    """Raise, on a worker, if its packages are not those of the process that fits."""
    own = versions()
    other = [name for name, version in expected.items() if own[name] != version]
    if other:
        told = ", ".join(f"{name} {own[name]} instead of {expected[name]}" for name in other)
        raise VersionError(
            f"A worker has {told}: models of different versions do not understand each other. No "
            f"results were written. Install the same versions on all workers and fit again."
        )


def in_partition(name: str, error: Exception) -> Exception:
    """An error that names the partition it came from."""
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return MemoryError(
            f"{name}: a task ended its worker several times ({error}): most likely a worker has "
            f"too little memory for a partition. No results were written. Use smaller partitions, "
            f"a smaller max_train, or workers with more memory."
        )
    ours = isinstance(error, VersionError) or type(error).__module__.startswith("distributed")
    if ours or name in str(error):
        return error
    if _is_unreadable(error):
        return unreadable(name, error)
    text = f"{name}: {error}"
    if type(error) in (ValueError, TypeError):
        return type(error)(text)
    return RuntimeError(f"{name}: {type(error).__name__}: {error}. No results were written.")


def _is_unreadable(error: BaseException) -> bool:
    return type(error).__module__.startswith("pyarrow") or type(error) is FileNotFoundError


def _lacks_workers(error: Exception) -> bool:
    # A scheduler with a no-workers-timeout fails the tasks itself. By name: older versions of
    # distributed do not have both errors.
    theirs = {"NoWorkerError", "NoValidWorkerError"}
    found = type(error)
    return isinstance(error, NoWorkersError) or (
        found.__module__.startswith("distributed") and found.__name__ in theirs
    )


@contextmanager
def clear_errors(client: Any) -> Iterator[None]:
    """Say what happened, in the words of someone who runs a fit, not of someone who runs Dask."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    address = client.scheduler.address if client.scheduler else "the scheduler"
    try:
        yield
    except KilledWorker as error:
        raise in_partition("A task of the fit", error) from error
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise ConnectionError(
            f"The connection to the scheduler at {address} was lost during the fit "
            f"({type(error).__name__}: {error}). No results were written; fit again."
        ) from error
    except Exception as error:
        if _lacks_workers(error):
            raise NoWorkersError(
                f"The cluster at {address} has had no worker for a while, so the fit cannot go on. "
                f"No results were written. Start workers and fit again."
            ) from None
        if _is_unreadable(error):
            raise unreadable("a partition", error) from error
        if "deserializ" in str(error) or isinstance(error, ModuleNotFoundError):
            raise VersionError(
                f"A worker cannot read what it is sent ({error}). No results were written. Install "
                f"the same versions of fewlabel and its packages on all workers and fit again."
            ) from error
        raise
