#!/usr/bin/env python3
"""`rille top`, and dev:telemetry(). usage: top_test.py RILLE STANDIN_NVML"""
import json, os, shutil, subprocess, sys, tempfile

from tap import check, finish

rille, standin = map(os.path.abspath, sys.argv[1:3])
root = tempfile.mkdtemp(prefix="rille-top-")


def run(*words, nvml=standin, play="", code=0):
    env = dict(os.environ, RILLE_HOME=root + "/home", NO_COLOR="1", RILLE_NVML=nvml, RILLE_STANDIN_NVML=play)
    if not nvml:
        del env["RILLE_NVML"]
    done = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60)
    check(f"{words} ends with {code}", done.returncode == code, done)
    return done


def readings(play="", count=1):
    out = run("top", "--json", "--interval", "10ms", "--count", str(count), play=play).stdout
    return [json.loads(line) for line in out.splitlines()]


first, second = readings()[0]["gpus"]
check("what a card tells", {k: first[k] for k in first if k != "processes"} == {
    "index": "0", "name": "NVIDIA H200", "uuid": "GPU-a", "bus": "00000000:01:00.0", "driver": "580.1",
    "gpu_percent": 97, "memory_percent": 41, "memory_used_bytes": 88e9, "memory_total_bytes": 150e9,
    "power_watts": 412.5, "power_limit_watts": 700, "energy_joules": 5000, "temperature_celsius": 58,
    "memory_temperature_celsius": 66, "sm_clock_mhz": 1980, "memory_clock_mhz": 3201,
    "slowdowns": ["power_cap", "thermal"], "pcie_tx_bytes_per_second": 102400, "pcie_rx_bytes_per_second": 204800,
    "ecc_corrected": 7, "ecc_uncorrected": 0, "xids": []}, first)
check("all its processes", len(first["processes"]) == 70 and first["processes"][1] == {
    "pid": 101, "memory_bytes": 1 << 20, "name": "/usr/bin/rille"} and "memory_bytes" not in first["processes"][0],
      first["processes"][:2])
check("what a card does not tell is left out", second == {
    "index": "1", "name": "NVIDIA H200", "uuid": "GPU-c", "bus": "00000000:02:00.0", "driver": "580.1",
    "temperature_celsius": 58, "memory_used_bytes": 3e9, "memory_total_bytes": 24e9, "xids": []}, second)

told = [r["gpus"][0]["xids"] for r in readings("xid", 2)]
check("a critical error is reported once", told == [[79, 31], []], told)
lost = readings("lost")[0]["gpus"][1]
check("a lost card says so, and the other goes on", lost["lost"] and "temperature_celsius" not in lost, lost)
gone, other = readings("gone")[0]["gpus"]
check("one that was lost before the first look hides no other", gone == {
    "index": "0", "lost": True, "driver": "580.1"} and other["index"] == "1" and other["name"] == "NVIDIA H200",
      (gone, other))
parts = [g["index"] for g in readings("mig")[0]["gpus"]]
check("the parts of a divided card", parts == ["0", "0:2", "1"], parts)
cpu = readings(count=3)[-1]["cpu"]
check("the processor", 0 <= cpu["cpu_percent"] <= 100 and 0 < cpu["memory_used_bytes"] < cpu["memory_total_bytes"], cpu)

lines = run("top", "--count", "1", "--interval", "10ms", play="xid").stdout.splitlines()
check("a table", lines[0].split()[:5] == ["gpu", "power", "temp", "mtemp", "sm"] and lines[2].startswith("cpu") and
      lines[3].split()[:6] == ["0", "412", "58", "66", "97", "41"], lines)
check("with notes", lines[3].endswith("XID 79, XID 31, power_cap, thermal"), lines)
check("and dashes", lines[4].split()[:5] == ["1", "-", "58", "-", "-"], lines)

none = run("top", "--count", "1", "--interval", "10ms", nvml=root + "/no.so")
check("without a library the processor is there", "cpu" in none.stdout and "no GPUs" in none.stderr, none)
none = run("top", "--count", "1", "--interval", "10ms", play="nodriver")
check("without a driver, too", "cpu" in none.stdout and "Driver Not Loaded" in none.stderr, none)
run("top", "--interval", "soon", code=2)
said = run("-e", 'local d = require("rille").device("cpu"); d:telemetry(); '
           'print(d:telemetry().memory_total_bytes > 0)').stdout
check("dev:telemetry() of the processor", said.strip() == "true", said)

shutil.rmtree(root)
finish()
