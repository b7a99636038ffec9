#!/usr/bin/env python3
"""Fails where two .cpp files of a folder have the same file-local name. usage: local_names.py [ROOT]

The files of a folder are compiled together (cmake/batches.cmake), in batches that move as files grow: two functions,
constants or classes of unnamed namespaces, or static ones, then become one. Functions may share a name if their numbers
of parameters differ. Reads the layout that clang-format gives: what a namespace holds begins in the first column.
"""

import collections
import re
import sys
from pathlib import Path

FOLDERS = ("kernels/generic", "runtime", "bindings", "tests/unit", "tests/contract")  # what rille_batches() compiles
ALONE = ("runtime/compute/device/cuda", "bindings/c/examples")  # not in batches
ALONE_FILES = "*prototypes_test.cpp"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{$")
NAMESPACE_ENDS = re.compile(r"^\}  // .*namespace.*$", re.M)
TEMPLATE = re.compile(r"template ?<[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*> ?")
TYPE = re.compile(r"(?:class|struct|union|enum(?: class)?) (\w+)(?: final)? ?[:{]")
ALIAS = re.compile(r"using (\w+) = ")
FUNCTION = re.compile(r"[\w>&*\]] [&*]?(\w+)\(")
VARIABLE = re.compile(r"[\w>&*] [&*]?(\w+)(?:\[[^\]]*\])* ?(?: =|[{;])")
NO_NAME = re.compile(r"(return|friend|using|namespace|static_assert|extern|typedef)\b")


def parameters(text):
    """The number of parameters in a list that begins behind its bracket."""
    depth, count, some = 0, 0, False
    for sign in text:
        if sign in ")]}>":
            if depth == 0:
                break
            depth -= 1
        elif sign in "([{<":
            depth += 1
        elif sign == "," and depth == 0:
            count += 1
        some = some or not sign.isspace()
    return count + 1 if some else 0


def name_of(text):
    """(name, number of parameters or None) of a declaration, or None: it has none, or is a class's member."""
    text = TEMPLATE.sub("", text, count=1)
    found = TYPE.match(text) or ALIAS.match(text)
    if found:
        return found[1], None
    if NO_NAME.match(text):
        return None
    function, variable = FUNCTION.search(text), VARIABLE.search(text)
    if function and not re.search(r" = |\{", text[:function.end()]):
        return function[1], parameters(text[function.end():])
    return (variable[1], None) if variable and "(" not in text[:variable.start()] else None


def local_names(text):
    """{(namespace, name, number of parameters or None): (line number, declaration)} of a file."""
    text = NAMESPACE_ENDS.sub("}namespace", text)
    lines = TEXT.sub('""', COMMENT.sub(lambda m: "\n" * m[0].count("\n"), text)).split("\n")
    out, spaces, begun, whole = {}, [], 0, ""
    for number, line in enumerate(map(str.rstrip, lines), 1):
        if whole:
            whole += " " + line.strip()
        elif found := NAMESPACE.match(line):
            spaces.append(found[1])
        elif line == "}namespace" and spaces:
            spaces.pop()
        elif line and (line[0].isalpha() or line[0] in "_["):
            begun, whole = number, line
        if re.search(r"[;{}]", whole) and whole.count("(") == whole.count(")"):
            known = name_of(whole)
            if known and ("" in spaces or "static " in whole.split("(")[0]):
                out.setdefault(("::".join(filter(None, spaces)), *known), (begun, whole))
            whole = ""
    return out


def check(root):
    """(problems, number of files) below root."""
    rooms = collections.defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((Path(root) / folder).rglob("*.cpp")):
            if path.parent.relative_to(root).as_posix() not in ALONE and not path.match(ALONE_FILES):
                rooms[path.parent].append(path)
    problems = []
    for paths in rooms.values():
        first = {}
        for path in paths:
            for key, (line, text) in local_names(path.read_text(errors="replace")).items():
                _, name, count = key
                where = f"{path.relative_to(root)}:{line}"
                if key not in first:
                    first[key] = (where, text)
                elif not (text.startswith("using ") and text == first[key][1]):
                    what = name if count is None else f"{name} with {count} parameters"
                    problems.append(f"{where}: {what} is also in {first[key][0]}: one batch may hold both")
    return problems, sum(map(len, rooms.values()))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]).resolve()
    problems, files = check(root)
    print("\n".join(problems + [f"local names: {files} files, {len(problems)} problems"]))
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
