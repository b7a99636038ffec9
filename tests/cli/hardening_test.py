#!/usr/bin/env python3
"""The program and its libraries have the protections of docs/building.md: hardening_test.py FILE .."""
import subprocess, sys
from pathlib import Path

from tap import check, finish


def readelf(file, *options):
    return subprocess.run(["readelf", *options, file], capture_output=True, text=True, check=True).stdout


for file in sys.argv[1:]:
    name = file.rsplit("/", 1)[-1]
    headers, dynamic, symbols = readelf(file, "-lW"), readelf(file, "-dW"), readelf(file, "-W", "--dyn-syms")
    stack = next(line for line in headers.splitlines() if "GNU_STACK" in line).split()
    check(f"{name}: the stack cannot be executed", stack[6] == "RW", stack)
    check(f"{name}: full RELRO", "GNU_RELRO" in headers and "NOW" in dynamic, dynamic)
    check(f"{name}: its address is not fixed", readelf(file, "-hW").split("Type:")[1].split()[0] == "DYN")
    check(f"{name}: returns are protected", "__stack_chk_fail" in symbols)
    check(f"{name}: memory functions are checked", "_chk@" in symbols)
    check(f"{name}: containers are checked", "glibcxx_assert" in symbols)
    # By the instructions: the linker drops the note (readelf -n: IBT, SHSTK), which Debian's crti.o and LuaJIT lack.
    code = Path(file).read_bytes()
    check(f"{name}: functions begin with endbr64", code.count(b"\xf3\x0f\x1e\xfa") > 500)
    check(f"{name}: large frames touch each page", b"\x48\x83\x0c\x24\x00" in code)  # orq $0, (%rsp)
finish()
