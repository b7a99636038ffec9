#!/usr/bin/env python3
"""What the build costs: processor seconds per folder, the dearest units and headers, without any compiler cache.

    tests/bench/build.py [rille|all] [--jobs 2] [--headers] [--keep]
    tests/bench/build.py --touch FILE [--folder build/release]

Configures the tree afresh in a folder of its own, as `./bootstrap run` (rille) or `./bootstrap test` (all) would, and
builds the target, with this file as the compilers' launcher. Each figure also stands as a multiple of a trivial unit
(a main() behind <string>), compiled in the same run: machines differ by half, those multiples hardly. --headers
compiles each widely included header alone and tells its seconds times the units that read it. --keep leaves the build
folder (build/measured) for a look.

--touch does none of this: it marks a .cpp as changed, builds rille again in a build folder that is up to date, and
prints the time and the processor seconds that compiling and linking took.
"""
import argparse
import collections
import functools
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "measured"
LOCAL = {"rille": ["RILLE_KERNEL_LEVELS=native", "RILLE_CUDA_IMAGES=native"]}   # `all` has the defaults of CMake


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def launch(log, command):
    """As the compilers' launcher: run the command, note its seconds and its output."""
    code = subprocess.run(command).returncode
    output = command[command.index("-o") + 1] if "-o" in command else "?"
    with open(log, "a") as file:
        file.write(f"{cpu_seconds():.3f} {output}\n")
    return code


def timed(command):
    before = cpu_seconds()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cpu_seconds() - before


def trivial_unit(folder):
    source = folder / "trivial.cpp"
    source.write_text("#include <string>\nint main() { return std::string().size(); }\n")
    command = ["c++", "-std=c++20", "-O2", "-c", source, "-o", folder / "trivial.o"]
    return statistics.median(timed(command) for _ in range(5))


@functools.cache
def folders():
    """Each folder of the sources, by its name in a unity unit's."""
    files = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    paths = {str(parent) for file in files for parent in pathlib.PurePath(file).parents}
    return {path.replace("/", "_"): path for path in sorted(paths)}


def room_of(output):
    """The folder of the sources that an object file was made of."""
    path = output.split(".dir/")[-1]
    if "/Unity/unity_" in "/" + path:
        name = path.split("unity_")[1].rsplit("_cxx", 1)[0].rsplit("_", 1)[0]
        return folders().get(name, name)
    for prefix in ("rille_kernels", "rille_stdlib", "rille_shim", "rille_group_text"):
        if prefix in output:
            return prefix.replace("rille_", "")
    folder = output.split("CMakeFiles/")[0] + "/".join(path.split("/")[:-1])
    return folder.strip("/") or "made by the build"


def units_of(log):
    for line in log.read_text().splitlines():
        seconds, output = line.split(" ", 1)
        yield float(seconds), output


def table(title, rows, trivial):
    print(f"\n{title:62} {'seconds':>8} {'x trivial':>10}")
    for name, seconds in rows:
        print(f"{name:62.62} {seconds:8.1f} {seconds / trivial:10.0f}")


def headers(trivial):
    """Each header's own seconds, times the units that read it, from ninja's record of what each unit has read."""
    said = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    readers = collections.Counter(line.strip().rsplit(str(ROOT) + "/", 1)[-1] for line in said.splitlines()
                                  if line.startswith("    ") and line.endswith(".hpp") and str(ROOT) in line)
    flags = ["-std=c++20", "-O0", "-fsyntax-only", "-x", "c++", "-w", f"-I{ROOT}", "-isystem",
             "/usr/include/luajit-2.1", "-DRILLE_ISA=v3"]
    rows = []
    for header, count in readers.most_common(60):
        try:
            rows.append((f"{header} ({count} units)", count * timed(["c++", *flags, ROOT / header])))
        except subprocess.CalledProcessError:
            continue   # not meant to stand alone
    table("the dearest headers: seconds alone, times readers", sorted(rows, key=lambda r: -r[1])[:10], trivial)


def rebuild(folder, jobs):
    """The build of rille in this folder: (seconds, processor seconds, commands that ran)."""
    start, before = time.time(), cpu_seconds()
    said = subprocess.run(["cmake", "--build", folder, "--target", "rille", "-j", jobs], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if said.returncode:
        sys.exit(f"{said.stdout[-3000:]}\nthe build of {folder} failed")
    steps = re.findall(r"^\[(\d+)/\d+\]", said.stdout, re.M)
    return time.time() - start, cpu_seconds() - before, int(steps[-1]) if steps else 0


def touch(name, folder, jobs):
    """Prints what one changed file costs. ccache, where the folder uses it, must not answer: it would, unchanged."""
    file = pathlib.Path(name).resolve()
    if not file.is_file() or file.suffix != ".cpp":
        sys.exit(f"--touch {name}: not a .cpp file")
    if not (folder / "CMakeCache.txt").is_file():
        sys.exit(f"--touch: {folder} is no build folder: ./bootstrap build makes it")
    os.environ["CCACHE_DISABLE"] = "1"
    rebuild(folder, jobs)   # so that only this file is new
    file.touch()
    wall, used, steps = rebuild(folder, jobs)
    if not steps:
        sys.exit(f"--touch {name}: rille is not made of it")
    print(f"{os.path.relpath(file, ROOT)}: {wall:.1f} s, {used:.1f} processor seconds, {steps} commands, {jobs} jobs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="rille")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--headers", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE", help="for cmake")
    parser.add_argument("--touch", metavar="FILE")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "release", help="for --touch")
    a = parser.parse_args()
    if a.touch:
        return touch(a.touch, a.folder, a.jobs)
    defines = LOCAL.get(a.target, []) + a.define
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    log = BUILD / "units.log"
    with tempfile.TemporaryDirectory() as folder:
        trivial = trivial_unit(pathlib.Path(folder))
    launcher = f"{sys.executable};{pathlib.Path(__file__).resolve()};--launch;{log}"
    start, before = time.time(), cpu_seconds()
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release",
                    f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}",
                    *(f"-D{d}" for d in defines)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "--target", a.target, "-j", a.jobs], check=True,
                   stdout=subprocess.DEVNULL)
    wall, total = time.time() - start, cpu_seconds() - before
    units = list(units_of(log))
    rooms = collections.Counter()
    for seconds, output in units:
        rooms[room_of(output)] += seconds
    rooms["the rest: links, generated files, nvcc, cmake"] = total - sum(s for s, _ in units)
    table("folder", rooms.most_common(), trivial)
    table("the dearest units", [(o.split(".dir/")[-1], s) for s, o in sorted(units, reverse=True)[:10]], trivial)
    if a.headers:
        headers(trivial)
    print(f"\n{a.target}: {total:.0f} processor seconds ({total / 60:.1f} min) in {len(units)} units, {wall:.0f} s "
          f"with {a.jobs} jobs; {total / trivial:.0f} times a trivial unit of {trivial:.3f} s")
    if not a.keep:
        shutil.rmtree(BUILD)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--launch"]:
        sys.exit(launch(sys.argv[2], sys.argv[3:]))
    main()
