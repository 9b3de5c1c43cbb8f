"""This module is the command line: what a person types, and what goes to stdout and stderr.

Only data goes to stdout. Progress bars and errors go to stderr; an error is one line, unless ``--debug`` asks for the
traceback. Exit codes: 0 done, 1 a clear error, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import logging
import os
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lnsim import cli_atlas, cli_many
from lnsim.cli_many import Complain
from lnsim.errors import HubError, LnsimError
from lnsim.near_names import with_near_names
from lnsim.text import json_text, printable
from lnsim.version import __version__

if TYPE_CHECKING:
    from lnsim.checkpoint.extract import Extracted
    from lnsim.report.pair_view import Comparison

_INTERRUPTED = 130  # exit code after Ctrl-C: 128 and the signal's number, as shells have it
_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_ABOUT: Mapping[str, Any] = _TEXTS.pop("lnsim")
_SHARED: Mapping[str, Any] = _TEXTS.pop("shared")  # arguments of several commands
_HELP_WIDTH = 79

Command = Callable[[argparse.Namespace, Complain], Iterable[str]]
"""What a command prints, text by text; errors that do not stop it are given to the second argument."""


def run(words: Sequence[str]) -> int:
    """Do what the words say, and return the exit code; SystemExit with 2 for wrong usage, with 0 after help."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: on busy cores its threads wait for one another
    parser = _parser()
    options, rest = parser.parse_known_args(words)
    if families := getattr(options, "families", None):
        os.environ["LNSIM_FAMILIES"] = str(families.absolute())  # read where the table of families is first needed
    # argparse takes no more sources once an option stood between them; shells and people do not care.
    if [word for word in rest if word.startswith("-")] or (rest and not hasattr(options, "sources")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.sources += rest
    options.typed = shlex.join(["lnsim", *words])  # what makes a page again
    _set_up_logging(options.debug)
    failed: list[LnsimError] = []

    def complain(error: LnsimError) -> None:
        if options.debug:
            logging.getLogger("lnsim").exception("The error's traceback:", exc_info=error)
        print(f"lnsim: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        failed.append(error)

    command: Command = options.command
    try:
        for text in command(options, complain):
            print(printable(text, keep="\n"), flush=True)
    except LnsimError as error:
        complain(error)
    except KeyboardInterrupt:
        print("lnsim: interrupted. What was not finished was not written.", file=sys.stderr)
        return _INTERRUPTED
    return 1 if failed else 0


def main() -> None:
    """Run the command line, and end the process."""
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        code = 1  # whoever read our output has left
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if code:
        _leave_at_once(code)


def _inspect(options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    from lnsim.checkpoint.inspection import inspect
    from lnsim.cli_text import bar, inspection_text

    try:
        with bar(f"headers of {options.source}") as progress:
            found = inspect(options.source, options.revision, model_type=options.model_type, progress=progress)
    except HubError as error:
        raise with_near_names(error, options.source) from error.__cause__
    yield json_text(asdict(found)) if options.json else inspection_text(found)


def _extract(options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    from lnsim.checkpoint.extract import extract_many
    from lnsim.checkpoint.reading import Question
    from lnsim.cli_text import bar, extract_record, extract_text

    asked = {"everything": options.all, "model_type": options.model_type, "evidence": options.evidence}
    questions = [Question.of(source, options.role, options.revision, **asked) for source in options.sources]
    how = {"out": options.out, "again": options.again, "in_flight": options.in_flight}
    with bar(options.sources[0] if len(questions) == 1 else f"{len(questions)} sources") as progress:
        for question, found in zip(questions, extract_many(questions, **how, progress=progress), strict=True):
            if isinstance(found, LnsimError):
                complain(with_near_names(found, question.source))
            else:
                yield json_text(extract_record(found)) if options.json else extract_text(found)


def _compare(options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    """Say what was found, then make the report where one is asked for, and say where it is.

    JSON is one object and comes when all is done, also where the report fails.
    """
    from lnsim.cli_text import bar
    from lnsim.report.pair_view import Comparison, read_sources
    from lnsim.report.saving import write_whole, writing

    with bar(f"{options.a} and {options.b}") as progress:
        how = {"model_type": options.model_type, "evidence": options.evidence, "progress": progress}
        a, b = read_sources([options.a, options.b], options.role, options.revision, **how)
    for one in (a, b):
        if isinstance(one, LnsimError):
            complain(one)
    if isinstance(a, LnsimError) or isinstance(b, LnsimError):
        return
    with bar("permutations", unit="role") as progress:
        asked = options.permutations, options.seed, options.evidence, options.same_token_ids, progress
        found = Comparison.of((options.a, options.b), a.vectors, b.vectors, *asked)
    if options.csv is not None:
        with writing(f"the rows of every layer into '{options.csv}'"):
            write_whole(options.csv, found.rows_as_csv().encode("utf-8"))
    if not options.json:
        yield found.markdown() if options.markdown else found.text()
    try:
        page = None if options.report is None else str(_report(options, a, b, found))
    except LnsimError:
        if options.json:
            yield json_text(found.record())
        raise
    if options.json:
        yield json_text(found.record(page))
    elif page is not None:
        yield f"Report: {page}"


def _report(options: argparse.Namespace, a: Extracted, b: Extracted, found: Comparison) -> Path:
    # Imported here: a comparison alone needs none of what a report needs.
    from lnsim.cli_text import bar
    from lnsim.report.two_models import write_page_of_two

    given = {name: getattr(options, name) for name in ("seed", "evidence", "same_token_ids")}
    given |= {"n_permutations": options.permutations, "roles": list(options.role or ()), "command": options.typed}
    with bar("report", unit="notebook") as progress:
        return write_page_of_two(options.report, a, b, found, given, progress)


def _list(options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    from lnsim.cli_text import listing, listing_text

    found = listing(options.pattern)
    if options.pattern and not found["models"]:
        print(f"lnsim: no stored model fits '{printable(options.pattern)}'.", file=sys.stderr)
    yield json_text(found) if options.json else listing_text(found, fold=not options.pattern)


def _study(options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    from lnsim.paths import from_here
    from lnsim.study.new import new_study

    path = new_study(options.name, options.sources)
    words = {"path": from_here(path), "run": f"python run_all.py --study {options.name}"}
    yield json_text(words) if options.json else "{path}: add the relations that are known, then {run}".format(**words)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="lnsim", **_ABOUT)
    parser.add_argument("--version", action="version", version=f"lnsim {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    work: dict[str, Command] = {
        "inspect": _inspect, "extract": _extract, "compare": _compare, "relatives": cli_many.relatives,
        "matrix": cli_many.matrix, "atlas": cli_atlas.atlas, "list": _list, "study": _study,
    }  # fmt: skip
    for name, does in work.items():
        _command(commands, name, does)
    return parser


class _Parser(argparse.ArgumentParser):
    """One that tells a near name where a command is mistyped."""

    def error(self, message: str) -> NoReturn:
        wrong = message.partition("invalid choice: '")[2].partition("'")[0]
        near = difflib.get_close_matches(wrong, [*_TEXTS, "new"], n=1) if wrong else []
        super().error(message + (f". Did you mean '{near[0]}'?" if near else ""))


_Commands = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns


def _command(commands: _Commands[_Parser], name: str, work: Command) -> None:
    what, examples = _TEXTS[name]["what"], _TEXTS[name]["examples"]
    parser = commands.add_parser(
        name,
        help=what.partition(". ")[0].rstrip("."),
        description=textwrap.fill(what, _HELP_WIDTH),
        epilog="examples:\n" + "\n".join(f"  {example}" for example in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error, and each retry")
    parser.set_defaults(command=work, wrong=parser.error)
    for argument, given in _TEXTS[name].get("arguments", {}).items():
        words: dict[str, Any] = _SHARED.get(given.get("like", argument), {}) | given
        ends = words.pop("whole", None)
        if ends or "path" in words:
            words["type"] = _whole(*ends) if ends else Path
        parser.add_argument(argument, **{key: word for key, word in words.items() if key not in ("like", "path")})


def _whole(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"expected a whole number from {low} to {high}, got '{text}'")
        return int(text)

    return number


def _leave_at_once(code: int) -> None:
    """End the process without waiting for its threads, as a normal exit would.

    After an error or Ctrl-C some may still wait for a server, and one may sit in a call that nothing wakes (a name
    server that does not answer). None has anything left to save: only this thread writes files, and it has cleaned up.
    """
    with suppress(OSError):  # whoever read our output may be gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


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
