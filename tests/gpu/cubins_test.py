#!/usr/bin/env python3
"""Every CUDA kernel of the project as the plug-in's build compiles it, for one architecture: each source becomes a
cubin whose header names that architecture, it has kernels, and none of them spills more registers than
the bounds below. ptx90: the PTX of 90, which serves architectures to come. Skipped where there is no nvcc.
usage: cubins_test.py NVCC 75|80|..|ptx90 SOURCES UNJOINED FLAG ..   (UNJOINED: sources that get -fmad=false, a|b)"""
import glob, os, re, struct, subprocess, sys, tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from tap import check, finish

SPILLED_BYTES = 256  # stores and loads of one kernel, each thread
SPILLED_BYTES_F64 = 512  # 408 in the sum of cross entropies on sm_120, which is not made for f64
nvcc, target, sources, unjoined = sys.argv[1:5]
flags = sys.argv[5:]
if not os.access(nvcc, os.X_OK):
    print(f"1..0 # SKIP no nvcc here ({nvcc}); CUDA_PATH names the toolkit")
    sys.exit(77)


def architecture(cubin):
    """The architecture that the ELF header of a cubin names, or why it is none. Its place in the flags moved with
    version 8 of the ABI (LLVM, llvm/BinaryFormat/ELF.h: EF_CUDA_SM_MASK)."""
    if cubin[:4] != b"\x7fELF":
        return "no ELF file"
    machine, = struct.unpack_from("<H", cubin, 18)
    bits, = struct.unpack_from("<I", cubin, 48)
    if machine != 190:
        return f"made for machine {machine}, not for CUDA"
    return (bits >> 8 if cubin[8] >= 8 else bits) & 0xff


def compiled(source, out):
    name = Path(source).stem
    how = ["-ptx", f"-arch=compute_{target[3:]}"] if target.startswith("ptx") else \
        ["-cubin", f"-arch=sm_{target}", "-Xptxas", "-v"]
    joined = ["-fmad=false"] if re.fullmatch(unjoined, name) else []
    return subprocess.run([nvcc, *how, *flags, *joined, "-o", out, source], capture_output=True, text=True)


def spilled(said):
    """Bytes of spills by kernel, as `ptxas -v` tells them."""
    return {kernel: int(stores) + int(loads) for kernel, stores, loads in re.findall(
        r"Function properties for (\S+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
        said)}


with tempfile.TemporaryDirectory(prefix="rille-cubins-") as folder:
    files = sorted(glob.glob(sources + "/*.cu"))
    check("there are sources", len(files) > 0, sources)
    worst, count = (0, "none"), 0
    for source in files:
        out = os.path.join(folder, Path(source).stem)
        done = compiled(source, out)
        name = f"{Path(source).name} for {target}"
        check(f"{name} compiles", done.returncode == 0, done.stdout + done.stderr)
        if done.returncode:
            continue
        if target.startswith("ptx"):
            text = Path(out).read_text()
            check(f"{name} names its target", f".target sm_{target[3:]}\n" in text, text[:400])
            check(f"{name} has kernels", ".entry " in text, text[:400])
            continue
        check(f"{name} names its architecture", architecture(Path(out).read_bytes()) == int(target),
              architecture(Path(out).read_bytes()))
        kernels = spilled(done.stdout + done.stderr)
        count += len(kernels)
        worst = max([worst, *((bytes_, kernel) for kernel, bytes_ in kernels.items())])
        over = {kernel: bytes_ for kernel, bytes_ in kernels.items()
                if bytes_ > (SPILLED_BYTES_F64 if kernel.endswith("f64") else SPILLED_BYTES)}
        check(f"{name} has kernels, none of which spills too much", kernels and not over,
              over or done.stderr)
    print(f"# {count} kernels; most spilled: {worst[0]} bytes ({worst[1]})")
finish()
