#!/usr/bin/env python3
"""Runs the Lua blocks of Markdown pages, so that what the documentation shows works.

usage: run.py RILLE LUAJIT PAGE...

A ```lua block is run by `rille run` in an empty folder with an empty RILLE_HOME, and must exit 0. When a ```output
block follows it, that is what it must print; a line `...` stands for any number of lines. A block that begins with
`-- fragment` is only checked for its syntax, and so are the examples in docs/reference, which show one call each.
Blocks in other languages are left alone.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"^(\s*)```\s*(\w*)")


def blocks(text):
    """Every fenced block as (line number of its first line, language, text, the output block after it or None)."""
    found, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        at += 1
        if not opening:
            continue
        start, body = at, []
        while at < len(lines) and not lines[at].strip().startswith("```"):
            body.append(lines[at].removeprefix(opening.group(1)))
            at += 1
        at += 1
        source = "\n".join(body) + "\n"
        if opening.group(2) == "output" and found and found[-1][1] == "lua":
            found[-1] = found[-1][:3] + (source,)
        else:
            found.append((start + 1, opening.group(2), source, None))
    return found


def matches(wanted, got):
    """Whether got is wanted, where a line `...` stands for any lines and spaces at line ends do not count."""
    parts = [re.escape(line.rstrip()) + r"\n" for line in wanted.strip().splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if part == r"\.\.\.\n" else part for part in parts)
    tidy = "\n".join(line.rstrip() for line in got.strip().splitlines()) + "\n"
    return re.fullmatch(pattern, tidy) is not None


def is_fragment(page, source):
    return source.lstrip().startswith("-- fragment") or "reference" in page.parts


def syntax_problem(luajit, source):
    done = subprocess.run([luajit, "-e", "local ok, err = loadstring(io.read('*a'), '=block') "
                           "if not ok then io.stderr:write(err) os.exit(1) end"],
                          input=source, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


def run_problem(rille, source, wanted):
    with tempfile.TemporaryDirectory(prefix="rille-docs-") as folder:
        script = Path(folder, "block.lua")
        script.write_text(source)
        work = Path(folder, "work")
        work.mkdir()
        environment = dict(os.environ, RILLE_HOME=str(Path(folder, "home")), NO_COLOR="1")
        try:
            done = subprocess.run([rille, "run", str(script)], cwd=work, env=environment, capture_output=True,
                                  text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=240)
        except subprocess.TimeoutExpired:
            return "still runs after 240 s"
    if done.returncode:
        return f"exit code {done.returncode}\n{done.stderr[-2000:]}"
    if wanted is not None and not matches(wanted, done.stdout):
        return f"printed\n{done.stdout}but the page says\n{wanted}"
    return None


def check_page(rille, luajit, page):
    """(problems, number of Lua blocks)"""
    problems, count = [], 0
    for line, language, source, wanted in blocks(page.read_text()):
        if language != "lua":
            continue
        count += 1
        problem = syntax_problem(luajit, source)
        if not problem and not is_fragment(page, source):
            problem = run_problem(rille, source, wanted)
        if problem:
            problems.append(f"{page}:{line}: {problem}")
    return problems, count


def main():
    rille, luajit, *pages = sys.argv[1:]
    if not Path(rille).exists():
        print(f"missing: {rille}: ./bootstrap build")
        return 1
    problems, count = [], 0
    for page in pages:
        found, number = check_page(rille, luajit, Path(page))
        problems += found
        count += number
    for problem in problems:
        print(problem)
    print(f"docs: {len(pages)} pages, {count} Lua blocks, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
