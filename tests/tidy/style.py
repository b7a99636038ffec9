#!/usr/bin/env python3
"""Fails on what the house style forbids and a machine can see. usage: style.py [ROOT]

Formatting itself is clang-format's business; this is about size, leftovers and manners.
"""

import re
import sys
from pathlib import Path

FOLDERS = ("kernels", "runtime", "bindings", "stdlib", "workflows", "tests", "cmake", ".ci")
STRANGERS = {"consumer", "hostile"}  # attacks, kept as they were written
TOP_FILES = ("CMakeLists.txt", "CMakePresets.json", "bootstrap")
CODE = {".c", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".lua", ".py", ".sh", ".cmake", ".txt", ".json", ".in"}
HEADERS = {".h", ".hpp", ".cuh"}
LINES_SOFT, LINES_HARD = 400, 600
COLUMNS = 120
FUNCTION_LINES = 70

LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")  # tidy: names them
PRINTS = re.compile(r"\bstd::(cout|cerr|clog)\b|(?<![\w.>:])(?:std::)?(printf|puts|putchar)\s*\(|\bfmt::print\b")
EXITS = re.compile(r"(?<![\w.>:])(?:std::)?(exit|quick_exit|abort)\s*\(")
AWAIT_IN_CHOICE = re.compile(r"\?[^;]*\bco_await\b")  # GCC 12 destroys temporaries of the branch that was not taken
THROWS = re.compile(r"\bthrow\s+[A-Za-z:]")
BODY_BEGINS = re.compile(r"[\w>)\]}] \{$")
STATEMENT_ENDS = re.compile(r"[;{}:]( *//.*)?$|^\s*(//|#)")
SIGNATURE = re.compile(r"(template ?<.*> )?[\w:<>,*&~\[\] ]*[ :*&~][\w~:]+\(")
NO_FUNCTION = re.compile(r"(class|struct|namespace|if|for|while|switch|else|return|co_return|case|do)\b")


def without_comment(line):
    """The line without a // comment and the insides of strings: enough for the words sought here."""
    return re.sub(r'"(\\.|[^"\\])*"', '""', line).split("//")[0]


def check_lines(relative, suffix, lines):
    for number, line in enumerate(lines, 1):
        at = f"{relative}:{number}:"
        if len(line) > COLUMNS:
            yield f"{at} {len(line)} columns, at most {COLUMNS}"
        if "\t" in line:
            yield f"{at} a tab"
        if line != line.rstrip():
            yield f"{at} space at the end of the line"
        if LEFTOVER.search(line) and "tidy:" not in line:
            yield f"{at} a leftover: {line.strip()}"
        if suffix in (".cpp", ".hpp") and AWAIT_IN_CHOICE.search(without_comment(line)):
            yield f"{at} co_await within ?: breaks under GCC 12; write an if: {line.strip()}"
        if relative.startswith(("runtime/", "kernels/")) and suffix != ".txt":
            code = without_comment(line)
            if PRINTS.search(code):
                yield f"{at} a library does not print: {line.strip()}"
            if EXITS.search(code):
                yield f"{at} a library does not exit: {line.strip()}"
            if relative.startswith("runtime/") and THROWS.search(code):
                yield f"{at} errors are values in runtime/: {line.strip()}"


def long_functions(lines):
    """(line, text, length) of C++ functions over the limit: clang-format puts the end in the column of the start."""
    for at, line in enumerate(lines):
        if not BODY_BEGINS.search(line):
            continue
        begin = at
        while begin and lines[begin - 1].strip() and not STATEMENT_ENDS.search(lines[begin - 1]):
            begin -= 1
        text = lines[begin].strip()
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        table = at + 1 < len(lines) and lines[at + 1].lstrip().startswith("return {")
        if not SIGNATURE.match(text) or NO_FUNCTION.match(text) or table:
            continue
        end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith(" " * indent + "}")), at)
        if end - begin >= FUNCTION_LINES:
            yield begin + 1, text, end - begin + 1


def check_header(relative, lines):
    if not lines or not lines[0].startswith(("//", "/*")):
        yield f"{relative}:1: a header opens with what it is for"
    if relative.endswith("rille.h"):  # C, and read by people: an include guard
        return
    if not any(line.strip() == "#pragma once" for line in lines):
        yield f"{relative}:1: no #pragma once"


def check_file(root, path, remarks):
    relative = path.relative_to(root).as_posix()
    text = path.read_text(errors="replace")
    lines = text.splitlines()
    if len(lines) > LINES_HARD:
        yield f"{relative}:{len(lines)}: {len(lines)} lines, at most {LINES_HARD}: split it by idea"
    elif len(lines) > LINES_SOFT:
        remarks.append(f"{relative}: {len(lines)} lines, better under {LINES_SOFT}")
    if text and not text.endswith("\n"):
        yield f"{relative}:{len(lines)}: no newline at the end"
    yield from check_lines(relative, path.suffix, lines)
    if path.suffix in (".cpp", ".hpp") and relative.startswith(("runtime/", "bindings/", "kernels/")):
        for number, function, length in long_functions(lines):
            yield f"{relative}:{number}: a function of {length} lines, at most {FUNCTION_LINES}: {function}"
    if path.suffix in HEADERS:
        yield from check_header(relative, lines)


def check(root):
    """(problems, remarks, number of files) below root."""
    root = Path(root)
    paths = [root / name for name in TOP_FILES if (root / name).is_file()]
    for folder in FOLDERS:
        paths += [p for p in sorted((root / folder).rglob("*")) if p.is_file() and (p.suffix in CODE or not p.suffix)]
    paths = [p for p in paths if "__pycache__" not in p.parts and not STRANGERS.issubset(p.parts)]
    problems, remarks = [], []
    for path in paths:
        problems += check_file(root, path, remarks)
    return problems, remarks, len(paths)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    problems, remarks, files = check(root)
    for line in remarks + problems:
        print(line)
    print(f"style: {files} files, {len(problems)} problems, {len(remarks)} remarks")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
