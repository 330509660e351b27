"""The command line: ``python3 -m course [start | test | run | check | hint | status | build …]``.

This file and what it imports at the top use the standard library only. Commands that need more
run inside the course's environment, which is made first if there is none.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from course import launcher
from course.contents import find, written
from course.environment import SetupError, ensure, satisfied

_INSIDE = ("run", "check", "hint", "status", "build", "grade", "site", "milestone", "reset")
_EXTRAS = {name: ["course"] for name in _INSIDE}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a Windows console may know neither ✔ nor ✘
            stream.reconfigure(errors="replace")
    parser = _parser()
    options, rest = parser.parse_known_args(given)
    command = options.command or "start"
    if rest and command != "test":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        status = _dispatch(command, options, rest, given)
        sys.stdout.flush()
        return status
    except (SetupError, LookupError) as error:
        print(f"\n{error.args[0]}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `… | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def _dispatch(command: str, options: argparse.Namespace, rest: list[str], given: list[str]) -> int:
    if command == "start":
        return _start(options)
    if command == "test" and options.gpu:
        from course import gpu

        return gpu.run(rest)
    if command == "test":
        python = ensure(["course", "test"])
        return launcher.run_inside(python, ["pytest", *rest])
    if not satisfied(_EXTRAS[command]):
        # a guard against going round in circles if the environment is damaged
        if os.environ.get("TOYTORCH_COURSE_INSIDE"):
            raise SetupError("The environment is incomplete: delete .venv and run this again.")
        python = ensure(_EXTRAS[command])
        os.environ["TOYTORCH_COURSE_INSIDE"] = "1"
        return launcher.run_inside(python, ["course", *given])
    return _inside(command, options)


def _start(options: argparse.Namespace) -> int:
    page = launcher.START
    if getattr(options, "chapter", None) is not None:
        chapter = find(options.chapter)
        if not chapter.written:
            raise LookupError(f"Chapter {chapter.number:02d} is not written yet.")
        page = chapter.stem
        print(
            f"Chapter {chapter.number:02d}, {chapter.title}. Nothing before it has to be solved: "
            "toytorch's own\nanswers are used. To go on with yours, run this in a cell of its own:"
            f"\n\n    from course import catch_up\n\n    catch_up({chapter.number})\n",
            flush=True,
        )
    return launcher.start(options.port, browser=not options.no_browser, page=page)


def _inside(command: str, options: argparse.Namespace) -> int:
    from course import shell

    if command == "status":
        return shell.status()
    if command == "run":
        return shell.run(find(options.chapter))
    if command == "reset":
        return shell.reset(options.chapter)
    if command == "milestone":
        return shell.milestone(options.chapter, solved=options.solved)
    if command == "check":
        return shell.check(options.chapter)
    if command == "hint":
        return shell.hint(options.exercise, options.grade)
    if command == "site":
        return shell.site(options.out)
    if command == "grade":
        from course.marking import command as marking

        return marking.run(options)
    chapters = [find(name) for name in options.chapters] or written()
    if options.nbgrader is not None:
        return shell.nbgrader(chapters, options.nbgrader)
    if options.pdf is not None:
        return shell.pdf(chapters, options.pdf)
    return shell.build(chapters, check=options.check, out=options.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m course",
        description="The toytorch course. Without a command it sets up and opens JupyterLab.",
    )
    _start_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    start = commands.add_parser("start", help="set up, then open JupyterLab at the start page")
    _start_options(start)
    start.add_argument("chapter", nargs="?", default=None, help="or at this chapter: 08")
    test = commands.add_parser(
        "test", help="install what tests need, run them (pytest's arguments)"
    )
    test.add_argument("--gpu", action="store_true", help="on a GPU, with a report to send back")
    run = commands.add_parser("run", help="run a chapter's solved notebook and time it")
    run.add_argument("chapter", help="04, 4 or autograd")
    check = commands.add_parser("check", help="check your notebook of a chapter")
    check.add_argument("chapter", help="04, or the path of a notebook")
    hint = commands.add_parser("hint", help="a hint for an exercise; asked again, the next one")
    hint.add_argument("exercise", help="as in its prompt: memory.view")
    hint.add_argument("grade", nargs="?", type=int, default=None, help="1, 2 or 3")
    reach = commands.add_parser("milestone", help="train a network on your own package, mytorch")
    reach.add_argument("chapter", help="04, 08, 10, 14, 15 or 19")
    reach.add_argument("--solved", action="store_true", help="on the course's own answers instead")
    again = commands.add_parser("reset", help="begin a chapter's notebook anew; the old is kept")
    again.add_argument("chapter", help="04, 4 or autograd")
    commands.add_parser("status", help="what you have solved so far")
    _grade_options(commands.add_parser("grade", help="for lecturers: mark a folder of notebooks"))
    site = commands.add_parser("site", help="make the course's web pages; they need no network")
    site.add_argument("--out", type=Path, default=None, help="where to (site/)")
    build = commands.add_parser("build", help="for authors: make notebooks, solutions and slides")
    build.add_argument("chapters", nargs="*", metavar="NN", help="which; all by default")
    build.add_argument("--check", action="store_true", help="write nothing; fail if out of step")
    build.add_argument("--nbgrader", type=Path, metavar="DIR", help="make a course for nbgrader")
    build.add_argument("--pdf", type=Path, metavar="DIR", help="print the slides, as PDF files")
    build.add_argument("--out", type=Path, default=None, help="another folder to write to")
    return parser


_WRITTEN = {  # what `grade` writes
    "csv": "write the marks there, not here",
    "totals": "write a line per student: points by chapter and in all",
    "moodle": "write a table that Moodle can import",
    "canvas": "write a table that Canvas can import",
    "statistics": "write a line per exercise: success, misconceptions, time",
    "dashboard": "write a page about the class",
    "similar": "write a page of answers that are too alike",
}
_READ = {  # and what it reads
    "roster": "the class: id, name, e-mail",
    "overrides": "your points and comments: student, exercise, points, comment",
    "times": "exceptions: student, chapter, handed in, due",
}


def _grade_options(grade: argparse.ArgumentParser) -> None:
    grade.add_argument("folder", type=Path, help="of notebooks, or an nbgrader course")
    grade.add_argument("--chapter", metavar="NN", default=None, help="this chapter only")
    for name, words in _WRITTEN.items():
        grade.add_argument(f"--{name}", type=Path, metavar="FILE", default=None, help=words)
    grade.add_argument("--feedback", type=Path, metavar="DIR", help="write a page per student")
    for name, words in _READ.items():
        grade.add_argument(f"--{name}", type=Path, metavar="FILE", default=None, help=words)
    grade.add_argument(
        "--due", action="append", default=[], metavar="TIME", help="2026-11-30T18:00, or 04=…"
    )
    grade.add_argument("--late", metavar="RULE", help="what coming late costs: “10%% per day”")
    grade.add_argument("--fresh", action="store_true", help="mark again what is known already")
    grade.add_argument("--seconds", type=float, default=20.0, help="time for one answer (20)")
    grade.add_argument("--megabytes", type=int, default=1024, help="memory for one answer (1024)")
    grade.add_argument("--jobs", type=int, default=None, help="answers marked at a time")


def _start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=None, help="this port and no other")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
