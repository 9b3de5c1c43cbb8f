"""This module is the command line: what a person types, and what goes to stdout and stderr.

Only data goes to stdout. Progress bars and errors go to stderr; an error is one line, unless ``--debug`` asks for the
traceback. Exit codes: 0 done, 1 a clear error, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from lnsim.checkpoint.source import Progress
from lnsim.errors import LnsimError
from lnsim.text import json_text, printable

__all__ = ["app", "main"]

T = TypeVar("T")

_INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the signal's number, as shells have it."""


class _Commands(TyperGroup):
    """The commands; Ctrl-C ends each of them with one exit code, whatever the version of typer makes of it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None


app = typer.Typer(
    name="lnsim",
    cls=_Commands,
    help="Read only the normalisation weights of model checkpoints, and measure what they say about a common origin.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SOURCE_HELP = "repo id, repo@revision, folder, .safetensors file or stored model's name"
Source = Annotated[str, typer.Argument(help=_SOURCE_HELP, show_default=False)]
Sources = Annotated[list[str], typer.Argument(help=_SOURCE_HELP, show_default=False)]
Revision = Annotated[str | None, typer.Option(help="branch, tag or commit of a repo id", show_default=False)]
Family = Annotated[str | None, typer.Option("--model-type", help="read it as this family", show_default=False)]
Roles = Annotated[list[str] | None, typer.Option("--role", help="a role to read; may be repeated", show_default=False)]
Again = Annotated[bool, typer.Option("--again", help="read from the Hub even what is kept already")]
InFlight = Annotated[int, typer.Option("--in-flight", min=1, max=256, help="requests to the Hub at once")]
Everything = Annotated[bool, typer.Option("--all", help="read all other norms as well")]
Out = Annotated[Path | None, typer.Option(help="folder for the extract [default: data/vectors]", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]
Debug = Annotated[bool, typer.Option("--debug", help="show the traceback of an error, and each retry")]


@app.command("inspect")
def inspect_command(
    source: Source, revision: Revision = None, model_type: Family = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Show what a checkpoint holds, from its headers alone.

    Example: lnsim inspect Qwen/Qwen3-4B
    """
    from lnsim.checkpoint.inspection import inspect
    from lnsim.cli_text import inspection_text

    with _bar(f"headers of {source}") as progress:
        found = _or_exit(lambda: inspect(source, revision, model_type=model_type, progress=progress), debug)
    typer.echo(_as_json(asdict(found)) if as_json else inspection_text(found))


@app.command("extract")
def extract_command(
    sources: Sources,
    role: Roles = None,
    revision: Revision = None,
    out: Out = None,
    everything: Everything = False,
    model_type: Family = None,
    again: Again = False,
    in_flight: InFlight = 16,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read the norm vectors of checkpoints and keep each as a small safetensors file.

    By default every norm with a role in the main tower and in an MTP block is read. Several sources are read at once.
    What was kept before of the same commit is not read from the Hub again.

    Examples: lnsim extract zai-org/GLM-4.5-Air; lnsim extract ./checkpoint --role pre_attention --out vectors
    """
    from lnsim.checkpoint.extract_many import extract_many
    from lnsim.checkpoint.question import Question
    from lnsim.cli_text import extract_record, extract_text

    _set_up_logging(debug)
    questions = [Question.of(s, role, revision, everything=everything, model_type=model_type) for s in sources]
    failed = 0
    with _bar(sources[0] if len(sources) == 1 else f"{len(sources)} sources") as progress:
        for found in extract_many(questions, out=out, again=again, in_flight=in_flight, progress=progress):
            if isinstance(found, LnsimError):
                _complain(found, debug)
                failed += 1
            else:
                typer.echo(_as_json(extract_record(found)) if as_json else extract_text(found))
    if failed:
        raise typer.Exit(1)


@app.command("list")
def list_command(as_json: AsJson = False, debug: Debug = False) -> None:
    """Show the studies, and the stored models with their commits."""
    from lnsim.cli_text import listing, listing_text

    found = _or_exit(listing, debug)
    typer.echo(_as_json(found) if as_json else listing_text(found))


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:
        _leave_at_once(_INTERRUPTED)
    except SystemExit as end:
        if isinstance(end.code, int) and end.code:
            _leave_at_once(end.code)
        raise


def _leave_at_once(code: int) -> None:
    """End the process without waiting for its threads, as a normal exit would.

    After an error or Ctrl-C some may still wait for a server, and one may sit in a call that nothing wakes (a name
    server that does not answer). None has anything left to save: only this thread writes files, and it has cleaned up.
    """
    with suppress(OSError):  # whoever read our output may be gone
        if code == _INTERRUPTED:
            typer.echo("lnsim: interrupted. What was not finished was not written.", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _or_exit(work: Callable[[], T], debug: bool) -> T:
    _set_up_logging(debug)
    try:
        return work()
    except LnsimError as error:
        _complain(error, debug)
        raise typer.Exit(1) from None


def _complain(error: LnsimError, debug: bool) -> None:
    if debug:
        logging.getLogger("lnsim").exception("The error's traceback:", exc_info=error)
    typer.echo(f"lnsim: {' '.join(str(error).split())}", err=True)


class _Harmless(logging.Formatter):
    """Log lines and tracebacks without what would steer the terminal: they may quote a server or a file."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), keep="\n")


def _set_up_logging(debug: bool) -> None:
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        if type(handler.formatter) is logging.Formatter:
            handler.setFormatter(_Harmless("%(message)s"))
    if debug:
        logging.getLogger("lnsim").setLevel(logging.DEBUG)


def _as_json(content: Any) -> str:
    return json_text(content)


@contextmanager
def _bar(label: str) -> Iterator[Progress]:
    """A progress bar on stderr, silent when that is no terminal."""
    from tqdm import tqdm

    with tqdm(desc=label[:60], unit="read", disable=None, leave=False, file=sys.stderr) as bar:

        def progress(done: int, planned: int) -> None:
            bar.total = planned
            bar.n = done
            bar.refresh()

        yield progress
