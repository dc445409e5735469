"""Runs a command line: parses it to a verb's Action, performs the Action, renders its Result, returns the exit code.

Typer only parses. A verb is performed outside of Typer, because Typer treats every EPIPE as a closed stdout, even that of a
broker's socket, and every EOFError as the end of the terminal's input.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import typer

from eosingest import __version__
from eosingest.cli import (
    broker,
    check,
    init,
    package,
    peek,
    plan,
    prepare,
    preview,
    run,
    schema,
    spark,
    status,
    submit_script,
    verify,
)
from eosingest.cli.options import Output, Quiet, Verbose, behind_the_verb, output_asked_for
from eosingest.cli.render import Renderer, logging_to
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import ignore_signals
from eosingest.errors import REPORT_A_BUG, EosingestError, InterruptedRunError, SpecError

PROGRAM = "eosingest"
_GROUP_SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
_EXAMPLES = {
    "init": ("init --from orders.csv", "init --from kafka://localhost:9092/orders", "init jobs/orders/"),
    "schema": ("schema > eosingest.schema.json",),
    "check": ("check orders.toml --param date=2026-11-20", "check --spark"),
    "plan": ("plan orders.toml --exit-code",),
    "preview": ("preview orders.toml --rows 3",),
    "run": ("run orders.toml --param date=2026-11-20", "run --if-running skip --quiet"),
    "status": ("status orders.toml",),
    "verify": ("verify orders.toml --against-source",),
    "prepare": ("prepare",),
    "package": ("package", "package env.tar.gz"),
    "submit-script": ("submit-script  # spark-submit --master yarn $(eosingest submit-script) run orders.toml",),
    "broker up": ("broker up",),
    "broker down": ("broker down --remove-data",),
    "broker status": ("broker status --output json",),
    "spark up": ("spark up --idle 2h", "spark up orders.toml --param date=2026-11-20"),
    "spark down": ("spark down",),
    "spark status": ("spark status --output json",),
    "topic peek": ("topic peek orders.toml --last -n 3", "topic peek orders --bootstrap-servers localhost:9092"),
}
_EXIT_CODES = """\b
Exit codes, the same for every verb:
   0  done, or nothing to do             7  a retry will not help
   1  a bug: please report it           10  the job has no progress here
   2  usage or spec                     11  another run is active
   3  incomplete: run again             12  source, spec or topic changed
   4  verify found a mismatch           20  plan --exit-code: work is pending
   5  temporary: a retry may help    128+N  ended by a signal, cleanly
   6  fenced by a newer run
"""
_T = TypeVar("_T")


def main() -> None:
    """Run this process's command line and exit with its exit code."""
    _fill_closed_streams()
    exit_code = exit_code_of(sys.argv[1:])
    ignore_signals()
    # At exit, the interpreter collects garbage several times, which takes 0.2 s. One collection is enough to close clients.
    gc.collect()
    gc.freeze()
    sys.exit(exit_code)


def _fill_closed_streams() -> None:
    """Open the null device for each closed standard stream: otherwise a socket gets its descriptor and receives output."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor: this one


def exit_code_of(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Every failure is printed; nothing is raised."""
    renderer = Renderer(output_asked_for(arguments))
    parsed = _guarded(renderer, PROGRAM, lambda: _parse(behind_the_verb(arguments)))
    if not isinstance(parsed, Action):
        return parsed if isinstance(parsed, int) else renderer.result(parsed)
    renderer = Renderer(parsed.output or renderer.output, quiet=parsed.quiet)
    before = dict(os.environ)
    try:
        with logging_to(renderer, verbose=parsed.verbose):
            return renderer.result(_guarded(renderer, parsed.command, lambda: parsed.perform(renderer)))
    finally:  # restore, for the caller, the variables that were removed for child processes (spec/secrets.py)
        os.environ.update({name: before[name] for name in before.keys() - os.environ.keys()})


def _parse(arguments: Sequence[str]) -> Action | Result | int:
    """Return a verb's Action, the Result of a usage error, or the exit code if Typer has printed all output (`--help`)."""
    try:
        parsed: Action | int | None = typer.main.get_command(_app()).main(
            list(arguments), prog_name=PROGRAM, standalone_mode=False
        )
    except _VersionAskedError:
        return _version()
    except typer.TyperException as error:
        return _usage_error(error)
    return parsed or 0


def _usage_error(error: typer.TyperException) -> Result:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else PROGRAM
    message = error.format_message().replace("Value error, ", "")  # pydantic's prefix, which Typer keeps
    if message.startswith("Usage:"):  # a group without a verb: Typer's message is the whole help
        message = f"no verb given\n{message}"
    spec_error = SpecError(message, code="usage", hint=f"{command} --help")
    return Result(command.removeprefix(PROGRAM).strip() or PROGRAM, exit_code=error.exit_code, errors=(spec_error,))


def _guarded(renderer: Renderer, command: str, step: Callable[[], _T]) -> _T | Result:
    """Return the step's value or, if it raises, a Result with the error."""
    try:
        return step()
    except EosingestError as error:
        return Result(command, exit_code=error.exit_code, errors=(error,))
    except KeyboardInterrupt:
        interrupted = InterruptedRunError("interrupted", signal_number=signal.SIGINT)
        return Result(command, exit_code=interrupted.exit_code, errors=(interrupted,))
    except Exception as error:
        renderer.bug()
        bug = EosingestError(f"{type(error).__name__}: {error}", hint=REPORT_A_BUG)
        return Result(command, exit_code=bug.exit_code, errors=(bug,))


class _VersionAskedError(Exception):
    """Raised through Typer by --version, so that a verb after it is not performed."""


def _ask_version(asked: bool) -> None:
    if asked:
        raise _VersionAskedError


def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_ask_version, is_eager=True, help="Print the version.")
    ] = False,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Accept flags before a verb: `output_asked_for` reads `--output`; `behind_the_verb` moves `-v` and `-q` to the verb."""


def _example(verb: str) -> str:
    """Return the end of a verb's help: its examples."""
    lines = "".join(f"  {PROGRAM} {example}\n" for example in _EXAMPLES[verb])
    return f"\b\nExample:\n{lines}"


def _topics() -> None:
    """The topics that runs write to."""


def _version() -> Action:
    result = Result("version", data={"eosingest": __version__}, lines=(f"eosingest {__version__}",))
    return Action("version", lambda renderer: result)


def _app() -> typer.Typer:
    """Return the Typer application. Its help is plain text, without escape codes that a CI log would show."""
    app = typer.Typer(
        help="One-shot, exactly-once ingestion runs into Apache Kafka.",
        epilog=_EXIT_CODES,
        add_completion=True,
        **_GROUP_SETTINGS,
    )
    app.callback()(_root)
    app.command("init", epilog=_example("init"))(init.init)
    app.command("schema", epilog=_example("schema"))(schema.schema)
    app.command("check", epilog=_example("check"))(check.check)
    app.command("plan", epilog=_example("plan"))(plan.plan)
    app.command("preview", epilog=_example("preview"))(preview.preview)
    app.command("run", epilog=_example("run"))(run.run)
    app.command("status", epilog=_example("status"))(status.status)
    app.command("verify", epilog=_example("verify"))(verify.verify)
    app.command("prepare", epilog=_example("prepare"))(prepare.prepare)
    app.command("package", epilog=_example("package"))(package.package)
    app.command("submit-script", epilog=_example("submit-script"))(submit_script.submit_script)
    brokers = typer.Typer(help="The embedded broker: a real Apache Kafka on this machine.", **_GROUP_SETTINGS)
    brokers.command("up", epilog=_example("broker up"))(broker.up)
    brokers.command("down", epilog=_example("broker down"))(broker.down)
    brokers.command("status", epilog=_example("broker status"))(broker.status)
    app.add_typer(brokers, name="broker")
    warm = typer.Typer(help="A JVM that stays warm, so that local runs begin sooner.", **_GROUP_SETTINGS)
    warm.command("up", epilog=_example("spark up"))(spark.up)
    warm.command("down", epilog=_example("spark down"))(spark.down)
    warm.command("status", epilog=_example("spark status"))(spark.status)
    app.add_typer(warm, name="spark")
    topics = typer.Typer(help="The topics that runs write to.", **_GROUP_SETTINGS)
    topics.callback()(_topics)
    topics.command("peek", epilog=_example("topic peek"))(peek.peek)
    app.add_typer(topics, name="topic")
    return app
