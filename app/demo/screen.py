"""What the demo tells while it goes on: one line a phase, and on a terminal a bar that moves."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rankscope.sample_data.progress import Progress as Step


class Screen:
    """Writes to stderr: stdout is for the report."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._began = time.monotonic()
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("steps", total=None, loss="–")

    @contextlib.contextmanager
    def bar(self) -> Iterator[None]:
        """Show the bar within the block, when this is a terminal."""
        with self._bar:
            yield

    def phase(self, name: str, text: str) -> None:
        """One line: what has just come about."""
        elapsed = time.monotonic() - self._began
        self._console.print(f"{elapsed:6.1f} s  {name:<10}{text}", markup=False, soft_wrap=True)

    def step(self, now: Step) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=now.step, total=now.steps, loss=f"{now.loss:.2f}")
