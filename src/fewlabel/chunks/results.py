"""Where the results of rows in chunks go: a new folder, there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fewlabel._core.atomic import can_be_made, new_folder, replaced
from fewlabel.chunks.files import need


@contextmanager
def result_folder(out: str | os.PathLike[str] | None) -> Iterator[Path | None]:
    """A folder to write parts into that gets its real name only if all of them are written.

    What a process left behind that was killed while it wrote the same folder is removed.
    """
    if out is None:
        yield None
        return
    final = Path(out)
    check_out(final)
    with new_folder(final) as folder:
        yield folder
        check_out(final)


def check_out(out: str | os.PathLike[str]) -> None:
    """Raise if results would mix with what is there already."""
    path = Path(out)
    if not can_be_made(path):
        raise FileExistsError(
            f"{path} exists already. Results go into a new folder: remove it or name another one."
        )


def write_part(folder: Path, position: int, columns: Any) -> None:
    """Write the results of one chunk, columns or a table; a part is there whole or not at all."""
    pyarrow = need("pyarrow", "Writing Parquet")
    parquet = need("pyarrow.parquet", "Writing Parquet")
    if not folder.is_dir():
        raise RuntimeError(
            f"{folder} for the results cannot be seen by a worker: it must lie on a file system "
            f"that all workers share."
        )
    # A task that is repeated after a lost worker writes the same part under the same name.
    table = pyarrow.table(columns) if isinstance(columns, dict) else columns
    with replaced(folder / f"part-{position:06d}.parquet") as temporary:
        parquet.write_table(table, temporary)
