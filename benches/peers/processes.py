"""Engines in processes of their own: one that takes too long is ended, and memory is its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from engines import ENGINES, ENVIRONMENT

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
#: The environment of the libraries that cannot live in ours.
INTERVALS = Path(os.environ.get("DOVETAIL_INTERVAL_LIBRARIES", ROOT / ".venv-intervals"))


class LeftOut(Exception):  # noqa: N818 (it is an outcome, and printed)
    """Why an engine has no time."""


class EngineProcess:
    """One engine, started when it is first asked."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._process: subprocess.Popen[str] | None = None
        #: The most memory that a run needed.
        self.peak = 0

    def ask(self, seconds: float, **message: Any) -> dict[str, Any]:
        """Sends a message and waits for its answer; an engine without one is ended."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            print(json.dumps(message), file=process.stdin, flush=True)
            ready, _, _ = select.select([process.stdout], [], [], seconds)
            line = process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = ""
        if line is None:
            self.close()
            raise LeftOut(f"takes more than {seconds:.0f} s")
        if not line:
            last_words = self._last_words()
            self.close()
            raise LeftOut(f"its process ended: {last_words}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LeftOut(answer["error"].partition("\n")[0])
        self.peak = max(self.peak, answer.get("peak", 0))
        return answer

    def close(self) -> None:
        """Ends the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            self._errors.close()
            self.peak = 0

    def _start(self) -> subprocess.Popen[str]:
        python = Path(sys.executable)
        if ENGINES[self._engine][0] == "interval_libraries":
            python = INTERVALS / "bin" / "python"
            if not python.exists():
                raise LeftOut("not installed; `make bench-peers` installs it")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        return subprocess.Popen(
            [python, HERE / "worker.py", self._engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "no word of why"
