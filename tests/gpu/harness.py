"""Runs the checks of checks.py with the `rille` of a bundle and reports what ran where, and what did not. See `run`."""
import argparse
import glob
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

import checks
import corpus
import machine
import pictures

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NO_TIME_S = 5  # a check with less than this is not begun
FIRST = 20  # losses that are compared with the CPU's
MAKE = """  ./bootstrap bundle
  cmake --build build/release --target launch_floor"""


def is_peer(check):
    return check.script.endswith((".py", ".cpp"))


def built(check):
    """The program of a .cpp, of the newest build; None: it has not been built."""
    found = glob.glob(f"{ROOT}/build/*/tests/gpu/{Path(check.script).stem}")
    return max(found, key=os.path.getmtime) if found else None


class Runner:
    """The bundle's `rille` in a home of its own, the Python that has PyTorch, and the time that is left."""

    def __init__(self, bundle, scratch, total_s):
        self.bundle, self.scratch = str(bundle), str(scratch)
        self.end = time.monotonic() + total_s
        self.python = os.environ.get("RILLE_TORCH_PYTHON", "python3")
        self.env = dict(os.environ, RILLE_HOME=self.scratch + "/home", XDG_CONFIG_HOME=self.scratch, NO_COLOR="1")

    def rille(self, words, limit_s):
        return self.run([self.bundle + "/bin/rille", *words], limit_s)

    def run(self, words, limit_s):
        """(exit code or None when the time was over, standard output, all that was said)."""
        process = subprocess.Popen(words, env=self.env, cwd=self.scratch, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=limit_s)
            return process.returncode, out, out + err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.end_agents()
            out, err = process.communicate()
            return None, out, out + err

    def program(self, check):
        if check.script.endswith(".cpp"):  # this system's C library may be older than the build's
            lib = self.bundle + "/lib"
            return [lib + "/ld-linux-x86-64.so.2", "--library-path", lib, built(check)]
        script = str(Path(self.bundle if check.script.startswith("workflows/") else HERE, check.script))
        return [self.python, "-B", script] if is_peer(check) else [self.bundle + "/bin/rille", "--json", "run", script]

    def end_agents(self):
        """Agents outlive their runner on purpose. Those of the homes here name theirs in their environment."""
        mark = f"\0RILLE_HOME={self.scratch}/".encode()
        for file in glob.glob("/proc/[0-9]*/environ"):
            pid = int(file.split("/")[2])
            try:
                if pid != os.getpid() and mark in b"\0" + Path(file).read_bytes():
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                continue

    def check(self, check, arguments, limit_s, filled, device):
        """One check in one place: {status, why, seconds, figures, device}."""
        limit_s = min(limit_s, self.end - time.monotonic())
        if limit_s < NO_TIME_S:
            return not_run("the time for all checks was over")
        self.env["RILLE_HOME"] = f"{self.scratch}/{check.home}"
        if any("{ids}" in word for word in arguments):
            corpus.write_ids(self.bundle, filled["ids"])
        command = [*self.program(check), *(word.format(**filled) for word in arguments)]
        result, losses = self.once(check, command, limit_s, device)
        if result["status"] == "ran" and check.beside_cpu:
            result = self.beside_cpu(check, command, limit_s - result["seconds"], result, losses)
        if result["status"] == "ran" and check.picture:
            result = beside_picture(check, filled, result)
        if check.spare:  # its checkpoints and pictures are large
            shutil.rmtree(f"{self.scratch}/{check.home}/runs", ignore_errors=True)
        return result

    def beside_cpu(self, check, words, limit_s, result, losses):
        """The result of a training, held against the losses of the same on the CPU."""
        self.env["RILLE_DEVICE"] = "cpu"
        other, wanted = self.once(check, words, limit_s, "cpu")
        del self.env["RILLE_DEVICE"]
        result["seconds"] = round(result["seconds"] + other.get("seconds", 0), 2)
        if other["status"] != "ran":
            return dict(other, seconds=result["seconds"], why="on the CPU: " + other["why"])
        steps = [[row["step"] for row in rows[:FIRST]] for rows in (losses, wanted)]
        if steps != [list(range(1, FIRST + 1))] * 2:
            return dict(result, status="failed", why=f"losses of steps 1 to {FIRST} are needed, it told {steps}")
        worst = max(abs(a["loss"] - b["loss"]) for a, b in zip(losses[:FIRST], wanted))
        result["figures"].append({"name": f"largest difference of {FIRST} losses to the CPU's", "value": worst,
                                  "unit": ""})
        if not worst <= check.beside_cpu:
            why = f"its losses differ from the CPU's by {worst:.3g}, at most {check.beside_cpu:g}"
            return dict(result, status="failed", why=why)
        return result

    def once(self, check, words, limit_s, device):
        """(what came of one process, the losses that it told)."""
        began = time.monotonic()
        code, out, said = self.run(words, limit_s)
        result = {"status": "ran", "seconds": round(time.monotonic() - began, 2)}
        if code is None:
            return dict(result, status="failed", why=f"not done after {limit_s:.0f} s", said=said[-2000:]), []
        try:
            data = json.loads(out)
            why = data.get("error", {}).get("message")
            answer = data.get("result")
            if isinstance(answer, dict) and answer.get("not_run"):
                return not_run(answer["not_run"]), []
            figures = figures_of(answer)
        except (ValueError, AttributeError):
            why, figures = "its output is no JSON", []
        if code != 0 or why:
            return dict(result, status="failed", why=why or f"exit code {code}", said=said[-2000:]), []
        for key in ("peer", "fallbacks"):
            if isinstance(answer, dict) and answer.get(key):
                result[key] = answer[key]
        if check.says_device:
            result["device"] = {key: answer.get(key) for key in ("device", "description")}
            if answer.get("device") != device:
                return dict(result, status="failed", why=f"it ran on {answer.get('device')}, not on {device}"), []
        values = {figure["name"]: figure["value"] for figure in figures}
        for name, bound in check.must:
            if name not in values or not kept(values[name], bound, values):
                why = f"{name} is {values.get(name)}, and has to be {bound}"
                return dict(result, status="failed", why=why), []
        return dict(result, figures=figures), answer.get("losses", []) if isinstance(answer, dict) else []


def not_run(why):
    return {"status": "not run", "why": why}


def kept(value, bound, others=None):
    """Whether the value keeps a bound such as ">= 0.5", or "<= 0.9 * NAME" of another figure."""
    sign, limit, *of = bound.split()
    limit = float(limit) * (others.get(of[1], math.nan) if of else 1)
    return value >= limit if sign == ">=" else value <= limit


def beside_picture(check, filled, result):
    """The result of a check that drew, held against the small picture of the same by the CPU."""
    path, wanted, bound = check.picture
    try:
        mean = pictures.difference(path.format(**filled), HERE / wanted)
    except (OSError, ValueError) as error:
        return dict(result, status="failed", why=f"its picture cannot be read: {error}")
    result["figures"].append({"name": "mean difference to the CPU's small picture", "value": mean, "unit": "of 255"})
    if mean > bound:
        why = f"its picture differs from the CPU's by {mean:.3g} of 255, at most {bound}"
        return dict(result, status="failed", why=why)
    return result


def figures_of(result):
    """A check's figures; of a workflow, the numbers that it returns."""
    if not isinstance(result, dict):
        return []
    if "figures" in result:
        return result["figures"]
    units = {"rate": result.get("rate_unit") or "", "peak_memory": "bytes"}
    return [{"name": k, "value": v, "unit": units.get(k, "")} for k, v in sorted(result.items())
            if isinstance(v, (int, float)) and not isinstance(v, bool)]


def unpack(archive, scratch):
    """The bundle's folder; a folder that is given is one already."""
    if os.path.isdir(archive):
        return os.path.abspath(archive)
    with tarfile.open(archive) as tar:
        tar.extractall(scratch + "/bundle")
    return glob.glob(scratch + "/bundle/*/")[0].rstrip("/")


def find_bundle(named):
    found = [named] if named else sorted(glob.glob(f"{ROOT}/build/*/rille-*-linux-x86_64.tar.gz"), key=os.path.getmtime)
    if not found or not os.path.exists(found[-1]):
        raise SystemExit(f"tests/gpu/run: there is no bundle. Make one, where nvcc is:\n{MAKE}")
    return found[-1]


def lacks_cuda(bundle):
    """Whether the bundle has no CUDA part, so that no GPU can be used, and none is lent by a variable."""
    return not Path(bundle, "lib/librille_cuda.so").exists() and not os.environ.get("RILLE_CUDA_PLUGIN")


def hold_cuda(bundle):
    """Ends where there is a GPU that this bundle cannot use: eight minutes on the CPU would tell nothing."""
    signs = machine.signs_of_gpu()
    if signs and lacks_cuda(bundle):
        raise SystemExit(f"tests/gpu/run: there is a GPU here ({', '.join(signs)}), and the bundle has no "
                         f"librille_cuda.so. Make one, where nvcc is:\n{MAKE}")


def other_commit(manifest):
    """What to say where the bundle is of another commit than the checks beside this file, or None."""
    here, made = machine.commit(ROOT), manifest["commit"] or ""
    made = made[:-len("-dirty")] if made.endswith("-dirty") else made
    return f"the bundle is of commit {made}, the checks of {here}" if here and made and here != made else None


def find_wheels(runner):
    """Rille looks for NVIDIA's libraries among the packages of the python3 that it sees; that one may only start the
    one that has them."""
    if "VIRTUAL_ENV" in runner.env or not shutil.which(runner.python):
        return
    code, out, _ = runner.run([runner.python, "-c", "import sys; print(sys.prefix)"], 20)
    if code == 0 and glob.glob(out.strip() + "/lib/python3*/*-packages/nvidia"):
        runner.env["VIRTUAL_ENV"] = out.strip()


def look(runner):
    """What the bundle's `rille` sees: its doctor's table, its devices, and where the driver had to be pointed out. What
    takes too long, or says no JSON, is told and holds nothing up."""
    seen = {"driver_folder": None, "devices": []}
    for folder in (None, machine.driver_folder()):
        if folder:
            runner.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [runner.env.get("LD_LIBRARY_PATH"), folder]))
        code, out, said = runner.rille(["doctor", "--json"], 60)
        if code not in (0, None):
            raise SystemExit(f"tests/gpu/run: the bundle's rille does not run here:\n{said}")
        rows = json.loads(out) if code == 0 else [{"what": "CUDA driver", "state": "unknown",
                                                   "found": "rille doctor was not done after 60 s"}]
        seen["doctor"] = {row["what"]: row for row in rows}
        seen["driver_folder"] = folder
        if seen["doctor"]["CUDA driver"]["state"] != "missing" or not machine.driver_folder():
            break
    script = Path(runner.scratch, "devices.lua")
    script.write_text('local list = {} for i, d in ipairs(require("rille").devices()) do '
                      'list[i] = { kind = d.kind, name = d.name, description = d.description } end return list')
    _, out, said = runner.rille(["--json", "run", str(script)], 60)
    try:
        seen["devices"] = json.loads(out)["result"]
    except (ValueError, KeyError, TypeError):
        seen["devices_said"] = said[-2000:]
    return seen


def look_for_torch(runner):
    """{version, cuda}, or {why} where there is none."""
    code, script = 1, "import torch; print(torch.__version__, torch.cuda.is_available())"
    if shutil.which(runner.python):
        code, out, _ = runner.run([runner.python, "-c", script], 120)
    if code != 0:
        return {"why": f"{runner.python} has no torch" if code else f"{runner.python}: torch is not there after 120 s"}
    version, cuda = out.split()[-2:]
    return {"version": version, "cuda": cuda == "True"}


class Torch:
    """look_for_torch, beside the first checks: importing it can take half a minute on a fresh machine. `seen`: what it
    found, waited for when somebody asks."""

    def __init__(self, runner):
        self.found = {"why": "looking for torch failed"}
        self.thread = threading.Thread(target=self.look, args=(runner,), daemon=True)
        self.thread.start()

    def look(self, runner):
        self.found = look_for_torch(runner)

    def seen(self):
        self.thread.join()
        return self.found


def why_no_gpu(check, gpus, seen):
    """Why the check cannot run on a GPU, or None."""
    if not gpus:
        return "no GPU on this machine"
    if check.script.endswith(".cpp"):
        return None if built(check) else f"{Path(check.script).stem} has not been built: ninja -C build/release of it"
    if is_peer(check):
        torch = seen["torch"].seen()
        return torch.get("why") or (None if torch["cuda"] else "this torch sees no CUDA device")
    if seen["doctor"]["CUDA driver"]["state"] == "missing":
        return "no CUDA driver that loads"
    if "devices_said" not in seen and not any(device["kind"] == "cuda" for device in seen["devices"]):
        return "this Rille has no CUDA device"
    return None


def run_checks(runner, gpus, seen, only):
    """A row per check: {name, what, peer, gpu, cpu}. Twins run only where no GPU does."""
    name = gpus[0]["name"] if gpus else ""
    filled = {"device": "cuda:0", "bundle": runner.bundle, "scratch": runner.scratch,
              "ids": runner.scratch + "/ids.bin",
              "peak": next((peak for part, peak in checks.PEAK_BF16_TFLOPS.items() if part in name), 0)}
    watch = machine.Watch(runner.scratch) if gpus else None
    try:
        kept_for = lambda check: 0 if check.spare or (only and check.name not in only) else check.gpu_limit_s
        planned = sum(kept_for(check) for check in checks.CHECKS)
        for check in checks.CHECKS:
            # What earlier checks left of their time is this one's, too, up to twice its own; later ones keep theirs.
            planned -= kept_for(check)
            left = runner.end - time.monotonic() - planned
            limit = max(check.gpu_limit_s, min(left, 2 * check.gpu_limit_s))
            reason = why_no_gpu(check, gpus, seen)
            if only and check.name not in only:
                gpu, cpu = not_run("not asked for"), not_run("not asked for")
            elif not reason and check.spare and left < check.gpu_limit_s:
                gpu = not_run(f"of the time for all checks {max(left, 0):.0f} s are left, and it may take "
                              f"{check.gpu_limit_s} s; --only \"{check.name}\" runs it")
                cpu = not_run("the GPU is there")
            elif not reason:
                gpu = runner.check(check, check.gpu, limit, filled, filled["device"])
                cpu = not_run("it ran on the GPU")
                gpu["after"] = watch.latest()  # clocks, power and heat, to explain unexpected figures
            else:
                gpu = not_run(reason)
                why = "it has no twin on the CPU" if check.cpu is None else (
                    is_peer(check) and seen["torch"].seen().get("why"))
                cpu = not_run(why) if why else runner.check(check, check.cpu, check.cpu_limit_s, filled, "cpu")
            yield {"name": check.name, "what": check.what, "peer": is_peer(check), "gpu": gpu, "cpu": cpu}
    finally:
        if watch:
            watch.end()


def figure(rows, check, name):
    """(the value on the GPU or None, why there is none)."""
    gpu = next((row["gpu"] for row in rows if row["name"] == check), not_run("its turn has not come"))
    value = next((f["value"] for f in gpu.get("figures", []) if f["name"] == name), None)
    return value, None if value is not None else f"{check}: " + gpu.get("why", "no such figure")


def judge(goal, rows):
    """The goal with what was measured for it, on a GPU only."""
    answer = {"goal": goal.what, "bound": goal.bound, "state": "not measured"}
    value, why = figure(rows, goal.check, goal.figure)
    if value is not None and (goal.of or goal.beyond):
        other, why = figure(rows, goal.of or goal.beyond, goal.figure)
        if other is None:
            value = None
        else:
            value = value / other if goal.of else value - other
    if value is None:
        return dict(answer, why=why)
    return dict(answer, state="met" if kept(value, goal.bound) else "missed", value=value)


def status_of(gpus, rows):
    places = [row[place]["status"] for row in rows for place in ("gpu", "cpu")]
    if "failed" in places:
        return "failed"
    if any(row["gpu"]["status"] == "ran" for row in rows if not row["peer"]):
        return "passed"
    return "nothing ran on the GPU" if gpus else "no GPU"


def show_row(row):
    place = next((p for p in ("gpu", "cpu") if row[p]["status"] != "not run"), None)
    state = row["gpu"]["status"] if place == "gpu" else f"not run ({row['gpu']['why']})"
    twin = f"; CPU twin {row['cpu']['status']}" if place == "cpu" else ""
    seconds = f"{row[place]['seconds']:.1f} s" if place else ""
    print(f"{row['name']:<30}{state}{twin}  {seconds}", flush=True)
    if place and row[place].get("device"):
        print(f"{'':<30}  device: " + ", ".join(filter(None, row[place]["device"].values())))
    if place and row[place].get("peer"):
        print(f"{'':<30}  " + ", ".join(f"{key}: {value}" for key, value in row[place]["peer"].items()))
    if place and row[place]["status"] == "failed":
        print(f"{'':<30}{row[place]['why']}")
    for figure in row[place].get("figures", []) if place else []:
        where = "" if place == "gpu" else "  (CPU)"
        print(f"{'':<30}  {figure['name']}: {figure['value']:.6g} {figure.get('unit', '')}{where}")
    for f in row[place].get("fallbacks", []) if place else []:
        print(f"{'':<30}  DECLINED by {f['library']}: {f['operation']}, {f['calls']} calls: {f['why']}")
    sys.stdout.flush()


def declined(rows):
    """What libraries declined on the GPU, over all checks: one row for each library and operation."""
    out = {}
    for row in rows:
        for f in row["gpu"].get("fallbacks", []):
            one = out.setdefault((f["library"], f["operation"]), dict(f, calls=0, checks=[]))
            one["calls"] += f["calls"]
            one["checks"].append(row["name"])
    return list(out.values())


class Report:
    """The report, which is written anew after each check: what is cut off loses nothing that was there."""

    def __init__(self, file, began, facts, manifest, seen):
        self.file, self.began, self.seen = Path(file).absolute(), began, seen
        self.fixed = {"machine": facts, "bundle": {k: manifest[k] for k in ("version", "build_id", "commit", "glibc")},
                      "other_commit": other_commit(manifest)}
        self.rows = []

    def write(self, status="unfinished"):
        torch = self.seen["torch"]
        found = torch.found if torch.thread.is_alive() else torch.seen()
        report = {"status": status, "seconds": round(time.monotonic() - self.began, 1), **self.fixed,
                  "rille": dict(self.seen, torch=found), "checks": self.rows, "fallbacks": declined(self.rows),
                  "goals": [judge(goal, self.rows) for goal in checks.GOALS]}
        part = self.file.with_name(self.file.name + ".part")
        part.write_text(json.dumps(report, indent=1) + "\n")
        os.replace(part, self.file)
        return report


def main(words):
    parser = argparse.ArgumentParser(prog="tests/gpu/run", description="GPU checks by the bundle's rille")
    parser.add_argument("--bundle", help="the archive, or its unpacked folder; default: the newest in build/")
    parser.add_argument("--json", help="where the report goes; default: $OUT/gpu.json, else gpu.json here")
    parser.add_argument("--only", nargs="+", help="names of checks")
    parser.add_argument("--require-gpu", action="store_true", help="fail where nothing ran on a GPU")
    o = parser.parse_args(words)
    file = o.json or (os.path.join(os.environ["OUT"], "gpu.json") if os.environ.get("OUT") else "gpu.json")
    began, scratch = time.monotonic(), tempfile.mkdtemp(prefix="rille-gpu-")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs is ended below
    runner = None
    try:
        bundle = unpack(find_bundle(o.bundle), scratch)
        hold_cuda(bundle)
        runner = Runner(bundle, scratch, checks.TOTAL_S - 12)
        facts, manifest = machine.describe(), json.loads(Path(bundle, "MANIFEST.json").read_text())
        find_wheels(runner)
        seen = look(runner)
        seen["torch"] = Torch(runner)
        show_machine(facts, manifest, seen)
        report = Report(file, began, facts, manifest, seen)
        report.write()
        for row in run_checks(runner, facts["gpus"], seen, o.only):
            report.rows.append(row)
            show_row(row)
            report.write()
        seen["torch"].seen()
    finally:
        if runner:
            runner.end_agents()
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(scratch, ignore_errors=True)
    return finish(report.write(status_of(facts["gpus"], report.rows)), file, o.require_gpu)


def show_machine(facts, manifest, seen):
    print(f"rille {manifest['version']}, build {manifest['build_id'][:12]}, glibc {manifest['glibc']} of the "
          f"bundle; here: {facts['system']}, {facts['c_library']}")
    if other_commit(manifest):
        print("WARNING: " + other_commit(manifest))
    facts["gpus"] = facts["gpus"] or [{"name": device["description"], "seen by": "this Rille alone"}
                                      for device in seen["devices"] if device["kind"] == "cuda"]
    for gpu in facts["gpus"] or [{}]:
        print("GPU: " + (", ".join(f"{k} {v}" for k, v in gpu.items()) or "none"))
    print(f"CUDA driver: {seen['doctor']['CUDA driver']['found'] or 'none'}\n", flush=True)


def finish(report, file, require_gpu):
    """Prints goals and a summary; the exit code."""
    rows, status = report["checks"], report["status"]
    print("\ngoals (measured on a GPU only)")
    for goal in report["goals"]:
        print(f"  {goal['bound']:<9}{goal['goal']}: " + (f"{goal['value']:.4g}, {goal['state']}" if "value" in goal else
                                                         f"not measured ({goal['why']})"))
    if report["fallbacks"]:
        print("\nDECLINED by libraries, Rille's own kernels ran:")
    for f in report["fallbacks"]:
        print(f"  {f['library']}: {f['operation']}, {f['calls']} calls ({', '.join(f['checks'])}): {f['why']}")
    ran = sum(row["gpu"]["status"] == "ran" and not row["peer"] for row in rows)
    count = sum(not row["peer"] for row in rows)
    print(f"\n{status}: {ran} of {count} checks of Rille ran on a GPU, {report['seconds']} s; report in {file}")
    if status in ("no GPU", "nothing ran on the GPU"):
        print("NOTHING OF RILLE RAN ON A GPU. What ran, ran on the CPU.")
        return 1 if require_gpu or status != "no GPU" else 0
    return 1 if status == "failed" else 0
