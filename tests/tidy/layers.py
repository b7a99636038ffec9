#!/usr/bin/env python3
"""Fails on an #include that points up the house. usage: layers.py [ROOT]

ALLOWED names, for each layer, the layers that its files may include besides their own; docs/design/layers.md says why.
A layer is a folder; the longest match counts. A folder that ALLOWED does not name is an error: place it first.
"""

import re
import sys
from pathlib import Path

BASE = ["runtime/core/base"]
LOOP = BASE + ["runtime/core/loop"]
CREDENTIALS = LOOP + ["runtime/core/net", "runtime/core/store"]
CORE = CREDENTIALS + ["runtime/core/net/credentials", "runtime/core/store/objects", "runtime/core/telemetry"]

DEVICE = CORE + ["kernels"]
COLLECTIVE = DEVICE + ["runtime/compute/device"]
TENSOR = COLLECTIVE + ["runtime/compute/collective"]
DATA = TENSOR + ["runtime/compute/tensor"]
COMPUTE = DATA + ["runtime/compute/data"]

TRANSFER = CORE + ["runtime/workflow/provider", "runtime/workflow/agent"]
LEASE = TRANSFER + ["runtime/workflow/transfer"]
ENGINE = LEASE + ["runtime/workflow/lease"]
WORKFLOW = ENGINE + ["runtime/workflow/engine"]

HOST = ["bindings/host"]
LUA = ["bindings/lua", "bindings/lua/compute", "bindings/lua/workflow"]
BOTH = sorted({*COMPUTE, *WORKFLOW})

ALLOWED = {
    "kernels": [],
    "runtime/core/base": [],
    "runtime/core/loop": BASE,
    "runtime/core/net": LOOP,
    "runtime/core/net/credentials": CREDENTIALS,
    "runtime/core/store": LOOP,
    "runtime/core/store/objects": CREDENTIALS + ["runtime/core/net/credentials"],
    "runtime/core/telemetry": LOOP,
    "runtime/compute/device": DEVICE,
    "runtime/compute/collective": COLLECTIVE,
    "runtime/compute/tensor": TENSOR,
    "runtime/compute/data": DATA,
    "runtime/workflow/provider": CORE,
    "runtime/workflow/agent": CORE,
    "runtime/workflow/transfer": TRANSFER,
    "runtime/workflow/lease": LEASE,
    "runtime/workflow/engine": ENGINE,
    "bindings/host": BOTH,
    "bindings/lua/compute": COMPUTE + HOST,
    "bindings/lua/workflow": WORKFLOW + HOST,
    "bindings/lua": BOTH + HOST + LUA,
    "bindings/c": BOTH + HOST + LUA,
    "bindings/kernel": COLLECTIVE,  # the program rille-kernel
    "bindings/cli": BOTH + HOST + LUA + ["bindings/c", "bindings/cli/parser"],
    "bindings/cli/parser": BASE + ["bindings/cli"],  # the table of commands
}
LAYERS = sorted(ALLOWED, key=len, reverse=True)
SOURCES = ("kernels", "runtime", "bindings")
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".cu", ".cuh", ".inc"}

INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\s*([<"])([^>"]+)[>"]')
LUA_HEADER = re.compile(r"(^|/)(lua|lauxlib|lualib|luajit|luaconf)\.(h|hpp)$")
# Third-party headers that only one corner of the house may know.
ONLY_IN = {
    "CLI/": ["bindings/cli/parser"],
    "curl/": ["runtime/core/net"],
    "sqlite3.h": ["runtime/core/store"],
    "archive": ["runtime/core/store"],
}


def layer_of(path):
    """The layer of a path relative to the root, or None."""
    return next((layer for layer in LAYERS if path == layer or path.startswith(layer + "/")), None)


def check_include(layer, style, header):
    """Why the layer may not include the header, or None."""
    if layer.startswith(("runtime", "kernels")) and LUA_HEADER.search(header):
        return "there is no Lua below bindings/"
    for prefix, homes in ONLY_IN.items():
        if header.startswith(prefix) and layer not in homes:
            return f"<{prefix}> is known only in {', '.join(homes)}"
    if header.startswith("../") or header.startswith("./"):
        return 'includes start at the repository root: "runtime/core/base/error.hpp"'
    if header.startswith(("stdlib/", "workflows/", "tests/")):
        return f"{layer} may not include {header.split('/')[0]}"
    if header.startswith(tuple(source + "/" for source in SOURCES)):
        target = layer_of(header)
        if target is None:
            return "no layer of that name"
        if target != layer and target not in ALLOWED[layer]:
            return f"{layer} may not include {target}"
    elif style == '"' and "/" not in header and layer != "kernels":
        return "own headers are included by their path from the repository root"
    return None


def check_file(root, path):
    relative = path.relative_to(root).as_posix()
    layer = layer_of(relative)
    if layer is None:
        yield f"{relative}:1: this folder is no layer; place it in tests/tidy/layers.py"
        return
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        include = INCLUDE.match(line)
        if include:
            why = check_include(layer, include.group(1), include.group(2))
            if why:
                yield f"{relative}:{number}: #include {include.group(2)}: {why}"


def check(root):
    """Every wrong arrow below root, as 'file:line: text'."""
    root = Path(root)
    problems, files = [], 0
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES:
                files += 1
                problems += check_file(root, path)
    return problems, files


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    problems, files = check(root)
    for problem in problems:
        print(problem)
    print(f"layers: {files} files, {len(problems)} wrong arrows")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
