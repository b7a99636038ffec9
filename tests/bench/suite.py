#!/usr/bin/env python3
"""What the fast tests cost: processor seconds and wall seconds of each, the dearest first, and their sum. Processor
time means something while other work slows the machine down; wall time does not.

usage: suite.py BUILD [-R REGEX] [-L LABEL] [--jobs N] [--slow]"""
import argparse, concurrent.futures, ctypes, json, os, re, resource, subprocess, sys, time

SUBREAPER = 36  # prctl: what a test leaves running comes to this process, and its time is counted, too


def reap(child, until):
    """Waits for `child`, and takes what else has ended meanwhile: a zombie may be waited for. Its code, or None."""
    while time.monotonic() < until:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if child and pid == child:
            return os.waitstatus_to_exitcode(status)
        if pid == 0:
            time.sleep(0.005)


def run(command, env, properties, log):
    with open(log, "wb") as out:
        process = subprocess.Popen(command, env=env, cwd=properties.get("WORKING_DIRECTORY"), stdout=out, stderr=out)
        code = reap(process.pid, time.monotonic() + properties.get("TIMEOUT", 1500))
    if code is None:
        process.kill()
    return "timeout" if code is None else code


def measure(test, log):
    """Runs one test in a process of its own; (code, wall, processor)."""
    properties = {p["name"]: p["value"] for p in test.get("properties", [])}
    env = dict(os.environ, **dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", [])))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
        began = time.monotonic()
        code = run(test["command"], env, properties, log)
        wall = time.monotonic() - began
        reap(None, wall + 2 + began)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(write, json.dumps([code, wall, used.ru_utime + used.ru_stime]).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return json.loads(pipe.read())


def main():
    words = argparse.ArgumentParser()
    words.add_argument("build")
    words.add_argument("-R", default="")
    words.add_argument("-L", default="")
    words.add_argument("--jobs", type=int, default=1)
    words.add_argument("--slow", action="store_true")
    o = words.parse_args()
    told = subprocess.run(["ctest", "--test-dir", o.build, "--show-only=json-v1"], capture_output=True, text=True)
    logs = o.build + "/suite"
    os.makedirs(logs, exist_ok=True)

    def wanted(test):
        labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
        return (o.slow == ("slow" in labels) and re.search(o.R, test["name"]) and "command" in test and
                (not o.L or any(re.search(o.L, label) for label in labels)))

    tests = [t for t in json.loads(told.stdout)["tests"] if wanted(t)]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        files = [f"{logs}/{t['name'].replace('/', '_')}" for t in tests]
        rows = [(t["name"], *row) for t, row in zip(tests, pool.map(measure, tests, files))]
    for name, code, wall, used in sorted(rows, key=lambda row: -row[3]):
        print(f"{used:8.2f} {wall:8.2f}  {name}{'' if code == 0 else f'  FAILED: {code}'}")
    wall, used = sum(row[2] for row in rows), sum(row[3] for row in rows)
    print(f"{used:8.2f} {wall:8.2f}  processor and wall seconds of {len(rows)} tests")


main()
