"""What this machine is, for the report: system, processor, GPUs, driver. Whatever cannot be read is left out."""
import ctypes
import os
import platform
import shutil
import subprocess
from pathlib import Path

# Where container runtimes and distributions put the driver's libraries, some without telling the loader.
DRIVER_FOLDERS = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib64", "/usr/lib64/nvidia",
                  "/usr/lib/wsl/lib", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/run/opengl-driver/lib"]
GPU_FIELDS = ["name", "uuid", "driver_version", "memory.total", "clocks.sm", "clocks.max.sm", "clocks.mem",
              "clocks.max.mem", "power.draw", "power.limit", "temperature.gpu", "mig.mode.current", "compute_cap"]


def output(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
        return done.stdout if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def text(file):
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


def fields(content, separator):
    pairs = (line.split(separator, 1) for line in content.splitlines() if separator in line)
    return {key.strip(): value.strip().strip('"') for key, value in pairs}


def query():
    """nvidia-smi's words for one line per GPU; empty: there is no nvidia-smi."""
    smi = shutil.which("nvidia-smi", path=os.environ.get("PATH", "") + ":/usr/bin:/usr/local/nvidia/bin")
    return [smi, "--query-gpu=" + ",".join(GPU_FIELDS), "--format=csv,noheader,nounits"] if smi else []


def gpus_in(lines):
    return [dict(zip(GPU_FIELDS, (word.strip() for word in line.split(",")))) for line in lines.splitlines()]


def gpus():
    """One table per GPU, as nvidia-smi tells it."""
    words = query()
    rows = gpus_in(output(*words)) if words else []
    if not rows:  # no nvidia-smi, but the kernel module names its GPUs
        rows = [{"name": fields(text(file), ":").get("Model", "unknown")}
                for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))]
    return rows


class Watch:
    """nvidia-smi, asked every two seconds by one process. While it is there the driver stays loaded: without NVIDIA's
    persistence daemon each process that begins on an idle GPU waits a second or more for that."""

    def __init__(self, folder):
        self.file, self.process, words = Path(folder, "gpus.csv"), None, query()
        if words:
            with open(self.file, "w") as out:
                self.process = subprocess.Popen([*words, "--loop=2"], stdout=out, stderr=subprocess.DEVNULL,
                                                stdin=subprocess.DEVNULL)

    def latest(self):
        """The first GPU as it was told last."""
        rows = [row for row in gpus_in(text(self.file)) if len(row) == len(GPU_FIELDS)] if self.process else []
        return [row for row in rows if row["uuid"] == rows[0]["uuid"]][-1:]

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def driver_folder():
    """Where libcuda.so.1 lies that the loader may not know of, or None."""
    return next((folder for folder in DRIVER_FOLDERS if os.path.exists(folder + "/libcuda.so.1")), None)


def signs_of_gpu():
    """What says that there is a GPU here, even where nvidia-smi does not list it; empty: nothing does."""
    signs = [gpu["name"] for gpu in gpus()] + ["/dev/nvidia0"] * os.path.exists("/dev/nvidia0")
    if driver_folder():
        signs.append(driver_folder() + "/libcuda.so.1")
    else:
        try:
            ctypes.CDLL("libcuda.so.1")
            signs.append("libcuda.so.1")
        except OSError:
            pass
    return signs


def commit(folder):
    """The commit that is checked out there, as a bundle's manifest has it, or "" where nobody knows."""
    return output("git", "-C", str(folder), "describe", "--always", "--abbrev=40").strip()


def describe():
    cpu = fields(text("/proc/cpuinfo"), ":")
    memory = fields(text("/proc/meminfo"), ":").get("MemTotal", "0 kB")
    libc = output("ldd", "--version").splitlines()
    return {
        "system": fields(text("/etc/os-release"), "=").get("PRETTY_NAME", "unknown"),
        "kernel": platform.release(),
        "c_library": libc[0] if libc else "none found",
        "processor": cpu.get("model name", "unknown"),
        "cores": os.cpu_count(),
        "memory_bytes": int(memory.split()[0]) * 1024,
        "nvidia_module": text("/proc/driver/nvidia/version").splitlines()[:1],
        "gpus": gpus(),
    }
