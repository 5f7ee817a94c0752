"""Progress of long calls: a tqdm bar, or whatever the caller passes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dovetail.errors import InvalidInputError

#: Called with (done, total) units of work, on the caller's thread.
ProgressCallback = Callable[[int, int], object]
#: What ``progress=`` takes.
Progress = bool | ProgressCallback


def check_progress(progress: object) -> None:
    """Refuse what ``progress=`` does not take."""
    if not (isinstance(progress, bool) or callable(progress)):
        raise InvalidInputError(
            f"progress={progress!r}; expected True, False or a callable that takes (done, total)"
        )


@contextmanager
def progress_callback(progress: Progress, title: str) -> Iterator[ProgressCallback | None]:
    """The callback to report to while the block runs, or ``None``."""
    if callable(progress):
        yield progress
    elif progress:
        with _bar(title) as callback:
            yield callback
    else:
        yield None


@contextmanager
def _bar(title: str) -> Iterator[ProgressCallback | None]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        # Past this generator, progress_callback, their context managers and the result's method.
        warnings.warn("progress=True needs tqdm: pip install 'dovetail[progress]'", stacklevel=6)
        yield None
        return
    with tqdm(desc=title, unit="", unit_scale=True) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
