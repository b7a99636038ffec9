#!/usr/bin/env python3
"""tests/gpu/run itself: what it says without a GPU, with one, of checks that fail or hang, and when time is over.

usage: harness_test.py BUNDLE
"""
import contextlib, io, json, os, stat, struct, subprocess, sys, tempfile, time, zlib
from pathlib import Path

sys.dont_write_bytecode = True
here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
import checks, corpus, harness, machine, pictures
from tap import check, finish

# A `rille` of two GPU devices whose check does what its arguments say.
FAKE = """#!/bin/sh
case "$*" in
  doctor*) echo '[{"what":"CUDA driver","state":"STATE","found":"CUDA 13.0"}]' ;;
  *devices.lua*) echo '{"result":[{"kind":"cpu"},{"kind":"KIND","description":"seen by Rille"}]}' ;;
  *--fail*) echo '{"error":{"message":"3 is not 4"}}'; exit 1 ;;
  *--hang*) setsid sleep 1000 & echo $! >"$RILLE_HOME.pid"; sleep 1000 ;;
  *--talk*) echo no JSON ;;
  *--copy*) while [ "$1" != --copy ]; do shift; done; cp "$2" "$3"; echo '{"result":{"figures":[]}}' ;;
  *--declined*) echo '{"result":{"figures":[],"fallbacks":[{"library":"cuBLASLt","operation":"matmul","calls":3,\
"why":"no algorithm"}]}}' ;;
  *--where*) echo '{"result":{"device":"cuda:0","description":"NVIDIA H200","loss":1}}' ;;
  *--losses*) n=20; case "$*" in *--short*) n=3 ;; esac
    d=cuda:0; l=1; if [ "$RILLE_DEVICE" = cpu ]; then d=cpu; l=1.002; fi
    rows=$(seq -s, -f '{"step":%g,"loss":LOSS}' $n | sed "s/LOSS/$l/g")
    echo "{\\"result\\":{\\"device\\":\\"$d\\",\\"losses\\":[$rows]}}" ;;
  *--cannot*) echo '{"result":{"not_run":"no compiler"}}' ;;
  *) echo "{\\"result\\":{\\"figures\\":[{\\"name\\":\\"rate\\",\\"value\\":7,\\"unit\\":\\"/s\\"}]}}" ;;
esac
"""
PYTHON = """#!/bin/sh
[ "$1" = -c ] && echo 2.11 True && exit
echo '{"result":{"figures":[{"name":"rate","value":2,"unit":"/s"}],"peer":{"attention":"flash, forced"}}}'
"""
H200 = [{"name": "NVIDIA H200", "driver_version": "580.1"}]


def fake_bundle(folder, state="ok", kind="cuda", plugin=True):
    for part in ("bin", "lib"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    if plugin:
        (folder / "lib/librille_cuda.so").touch()
    program = folder / "bin/rille"
    program.write_text(FAKE.replace("STATE", state).replace("KIND", kind))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "MANIFEST.json").write_text('{"version":"0","build_id":"0123456789abcdef","commit":"c","glibc":"2"}')
    return folder


def run(folder, gpus, *words):
    """The report, the exit code and what was printed."""
    machine.gpus = lambda: gpus
    machine.signs_of_gpu = lambda: [gpu["name"] for gpu in gpus]
    machine.commit = lambda folder: "d"
    machine.driver_folder = lambda: None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = harness.main(["--bundle", str(folder), "--json", str(folder) + ".json", *words])
    return json.loads(Path(str(folder) + ".json").read_text()), code, said.getvalue()


def alive(pid):
    state = machine.text(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()
    return bool(state) and state[0] != "Z"


def test_fake(folder):
    one = lambda name, *words, limit=30: checks.Check(name, "", "x.lua", list(words), limit, [])
    bundle = fake_bundle(folder / "bundle")
    checks.CHECKS = [one("good", "--device", "{device}"), one("wrong", "--fail"), one("garbage", "--talk"),
                     one("unable", "--cannot")]
    checks.GOALS = [checks.Goal("enough", ">= 7", "good", "rate"), checks.Goal("too much", "<= 6", "good", "rate"),
                    checks.Goal("unknown", ">= 1", "wrong", "rate"),
                    checks.Goal("beside nothing", ">= 1", "good", "rate", beyond="unable")]
    report, code, said = run(bundle, H200)
    by_name = {row["name"]: row for row in report["checks"]}
    check("a check that fails on the GPU fails the run", code == 1 and report["status"] == "failed", report)
    check("its message is in the report", by_name["wrong"]["gpu"]["why"] == "3 is not 4", by_name)
    check("output that is no JSON is a failure", by_name["garbage"]["gpu"]["status"] == "failed", by_name)
    check("a check may say that it cannot run", by_name["unable"]["gpu"]["status"] == "not run" and
          by_name["unable"]["gpu"]["why"] == "no compiler", by_name)
    check("on a GPU the twin does not run", by_name["good"]["cpu"]["status"] == "not run", by_name)
    states = [goal["state"] for goal in report["goals"]]
    check("goals are met, missed, or not measured", states == ["met", "missed", "not measured", "not measured"], states)

    checks.CHECKS, checks.GOALS = [one("good")], []
    report, code, said = run(bundle, H200)
    check("all well on the GPU: passed", code == 0 and report["status"] == "passed" and "NOTHING" not in said, said)
    check("the report names the GPU", report["machine"]["gpus"] == H200, report["machine"])

    checks.CHECKS = [checks.Check("told", "", "x.lua", ["--where"], 30, ["--where"], says_device=True)]
    report, code, said = run(bundle, H200)
    check("a workflow that names the GPU passes, and its name is printed", code == 0 and
          report["checks"][0]["gpu"]["device"]["device"] == "cuda:0" and "cuda:0, NVIDIA H200" in said, said)
    report, code, said = run(fake_bundle(folder / "cpu", kind="cpu"), [])
    check("one that ran elsewhere than it should fails", code == 1 and
          report["checks"][0]["cpu"]["why"] == "it ran on cuda:0, not on cpu", report)
    twice = lambda name, bound, *words: checks.Check(name, "", "x.lua", ["--losses", *words], 30, says_device=True,
                                                     beside_cpu=bound)
    must = lambda name, *bounds: checks.Check(name, "", "x.lua", [], 30, must=bounds)
    checks.CHECKS = [twice("near", 3e-3), twice("far", 1e-3), twice("few", 1, "--short"),
                     must("kept", ("rate", ">= 7"), ("rate", "<= 7")), must("not kept", ("rate", "<= 6")),
                     must("not told", ("loss", "<= 6"))]
    report, code, said = run(bundle, H200)
    by_name = {row["name"]: row["gpu"] for row in report["checks"]}
    check("losses near the CPU's pass, and the difference is told", by_name["near"]["status"] == "ran" and
          abs(by_name["near"]["figures"][0]["value"] - 2e-3) < 1e-9 and by_name["near"]["device"]["device"] == "cuda:0",
          by_name)
    check("losses that differ from the CPU's fail", code == 1 and by_name["far"]["status"] == "failed" and
          by_name["far"]["why"] == "its losses differ from the CPU's by 0.002, at most 0.001", by_name)
    check("too few losses fail", "losses of steps 1 to 20 are needed" in by_name["few"].get("why", ""), by_name)
    check("a figure that has to keep a bound, and does not, fails", by_name["kept"]["status"] == "ran" and
          by_name["not kept"]["why"] == "rate is 7, and has to be <= 6" and
          by_name["not told"]["why"] == "loss is None, and has to be <= 6", by_name)
    test_spare(bundle, one)
    test_pictures(bundle, folder)
    checks.CHECKS = [one("good")]

    file = str(bundle) + ".json"  # where run() lets the report go
    checks.CHECKS = [one("first"), one("second", "--copy", file, file + ".then")]
    run(bundle, H200)
    then = json.loads(Path(file + ".then").read_text())
    check("the report is written anew after each check", then["status"] == "unfinished" and
          [row["name"] for row in then["checks"]] == ["first"] and then["machine"]["gpus"] == H200, then)
    checks.CHECKS = [one("product", "--declined"), one("again", "--declined")]
    report, code, said = run(bundle, H200)
    check("what a library declined is told, and added up", code == 0 and
          "DECLINED by cuBLASLt: matmul, 3 calls: no algorithm" in said and report["fallbacks"] == [
              {"library": "cuBLASLt", "operation": "matmul", "calls": 6, "why": "no algorithm",
               "checks": ["product", "again"]}], (said, report))
    checks.CHECKS = [one("good")]

    for state, kind, why in (("missing", "cuda", "no CUDA driver"), ("ok", "cpu", "no CUDA device")):
        report, code, said = run(fake_bundle(folder / "lame", state, kind), H200)
        row = report["checks"][0]
        check(f"a GPU, but {why}: the twin runs, and the run says so and fails", code == 1 and
              why in row["gpu"]["why"] and row["cpu"]["status"] == "ran" and
              report["status"] == "nothing ran on the GPU" and "NOTHING OF RILLE RAN" in said, report)
    torch = folder / "python"
    torch.write_text(PYTHON)
    torch.chmod(0o755)
    os.environ["RILLE_TORCH_PYTHON"] = str(torch)
    checks.CHECKS = [one("good"), checks.Check("peer", "", "x.py", [], 30)]
    checks.GOALS = [checks.Goal("ratio", ">= 3", "good", "rate", "peer"),
                    checks.Goal("difference", "<= 5", "good", "rate", beyond="peer"),
                    checks.Goal("none", ">= 3", "good", "x", "peer")]
    report, code, said = run(bundle, H200)
    check("a goal beside a peer is the ratio or the difference",
          [goal.get("value") for goal in report["goals"]] == [3.5, 5, None], report)
    check("what a peer says of itself is told", "attention: flash, forced" in said and
          report["checks"][1]["gpu"]["peer"] == {"attention": "flash, forced"}, said)
    report, code, said = run(fake_bundle(folder / "lame", "ok", "cpu"), H200)
    check("a peer alone is nothing of Rille", report["checks"][1]["gpu"]["status"] == "ran" and
          report["status"] == "nothing ran on the GPU", report)
    checks.CHECKS, checks.GOALS = [one("good")], []

    report, code, said = run(fake_bundle(folder / "lame", "ok", "cpu"), [])
    check("without a GPU the twins run and it ends well", code == 0 and report["status"] == "no GPU", report)
    report, code, said = run(fake_bundle(folder / "lame", "ok", "cpu"), [], "--require-gpu")
    check("--require-gpu makes that a failure", code == 1, said)
    report, code, said = run(bundle, [])
    check("a GPU that Rille alone sees is one", report["status"] == "passed" and
          report["machine"]["gpus"][0]["name"] == "seen by Rille", report)
    check("a bundle of another commit is told", "WARNING: the bundle is of commit c, the checks of d" in said and
          report["other_commit"], said)
    try:
        said = run(fake_bundle(folder / "bare", plugin=False), H200)[2]
    except SystemExit as stopped:
        said = str(stopped)
    check("a GPU and a bundle without the CUDA part: it stops, and names the commands", "NVIDIA H200" in said and
          "./bootstrap bundle\n  cmake --build build/release --target launch_floor" in said, said)
    report, code, said = run(fake_bundle(folder / "bare", "ok", "cpu", plugin=False), [])
    check("without a GPU such a bundle runs the twins", code == 0 and report["status"] == "no GPU", report)

    harness.NO_TIME_S = 0
    checks.CHECKS = [one("hangs", "--hang", limit=1), one("after")]
    pids = []
    rmtree = harness.shutil.rmtree
    harness.shutil.rmtree = lambda path, **words: (pids.append(machine.text(path + "/home.pid").strip()),
                                                   rmtree(path, **words))
    report, code, said = run(bundle, H200)
    harness.shutil.rmtree = rmtree
    check("a check that hangs is ended and fails; the next one runs", code == 1 and
          [row["gpu"]["status"] for row in report["checks"]] == ["failed", "ran"], report)
    check("it may take what is left, up to twice its time", report["checks"][0]["gpu"]["why"] == "not done after 2 s",
          report)
    check("what it left running is ended", pids and pids[0] and not alive(pids[0]), pids)

    checks.TOTAL_S = 0
    report, code, said = run(bundle, H200)
    check("when the time is over nothing is begun", [row["gpu"].get("why") for row in report["checks"]] ==
          ["the time for all checks was over"] * 2, report)


def test_spare(bundle, one):
    long = lambda name, limit: checks.Check(name, "", "x.lua", [], limit, [], spare=True)
    checks.CHECKS = [one("first"), long("fits", 20), long("does not", 10 * checks.TOTAL_S), long("still fits", 20),
                     checks.Check("falls", "", "x.lua", ["--where"], 5, must=(("loss", "<= 0.9 * first"),))]
    report, code, said = run(bundle, H200)
    by_name = {row["name"]: row["gpu"] for row in report["checks"]}
    check("a check without time of its own runs where that is left", [by_name[name]["status"] for name in (
        "first", "fits", "still fits")] == ["ran"] * 3, by_name)
    check("where it is not left the check is not run, and says what it may take", by_name["does not"]["status"] ==
          "not run" and f"are left, and it may take {10 * checks.TOTAL_S} s" in by_name["does not"]["why"] and
          "are left, and it may take" in said, by_name)
    check("a bound by a figure that is not there is not kept", code == 1 and by_name["falls"]["status"] == "failed" and
          by_name["falls"]["why"] == "loss is 1, and has to be <= 0.9 * first", by_name)
    values = {"loss": 3, "first_loss": 4}
    check("a bound by another figure", harness.kept(3, "<= 0.9 * first_loss", values) and
          not harness.kept(3.7, "<= 0.9 * first_loss", values), values)


def write_png(path, width, height, pixels):
    rows = b"".join(b"\0" + pixels[3 * width * y:3 * width * (y + 1)] for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def test_pictures(bundle, folder):
    width, height, pixels = pictures.ppm(here / "raytrace.ppm")
    larger = b"".join(b"".join(pixels[3 * i:3 * i + 3] * 3 for i in range(width * y, width * (y + 1))) * 2
                      for y in range(height))
    write_png(folder / "same.png", 3 * width, 2 * height, larger)
    write_png(folder / "other.png", 3 * width, 2 * height, bytes(255 - b for b in larger))
    check("a larger picture of the same is the same", pictures.difference(folder / "same.png", here / "raytrace.ppm") ==
          0, None)
    drawn = lambda name: checks.Check(name, "", "x.lua", ["--copy", f"{folder}/{name}.png", "{scratch}/p.png"], 30,
                                      picture=("{scratch}/p.png", "raytrace.ppm", 1))
    checks.CHECKS = [drawn("same"), drawn("other")]
    report, code, said = run(bundle, H200)
    same, other = (row["gpu"] for row in report["checks"])
    check("a picture like the CPU's passes", same["status"] == "ran" and same["figures"][-1]["value"] == 0, same)
    check("another one fails", code == 1 and other["status"] == "failed" and
          "its picture differs from the CPU's by" in other["why"], other)


def test_corpus(folder):
    (folder / "corpus/docs/manual").mkdir(parents=True)
    (folder / "corpus/docs/manual/a.md").write_text("the kernel and the tensor, the end\n")
    corpus.write_ids(folder / "corpus", folder / "ids.bin")
    data = (folder / "ids.bin").read_bytes()
    magic, version, count = struct.unpack("<3i", data[:12])
    ids = struct.unpack(f"<{count}H", data[1024:])
    check("words become ids, the most frequent first, enough for a large batch", (magic, version) == (20240520, 1) and
          count >= 300_000 and ids[0] == ids[6] == 1 and ids[1] == 0, (magic, version, count, ids[:8]))


def test_watch(folder):
    smi = folder / "nvidia-smi"
    line = lambda name: ",".join([name] * len(machine.GPU_FIELDS))
    smi.write_text(f"#!/bin/sh\necho {line('a')}\necho {line('b')}\necho {line('a')}\nexec sleep 1000\n")
    smi.chmod(0o755)
    path, os.environ["PATH"] = os.environ["PATH"], f"{folder}:{os.environ['PATH']}"
    watch = machine.Watch(folder)
    os.environ["PATH"] = path
    until = time.monotonic() + 60
    while not watch.latest() and time.monotonic() < until:
        time.sleep(0.01)
    told = watch.latest()
    watch.end()
    check("one nvidia-smi tells of the first GPU and is ended", told and told[0]["name"] == "a" and
          watch.process.returncode is not None, told)


def test_budget():
    limits = sum(one.gpu_limit_s for one in checks.CHECKS if not one.spare)
    check(f"all limits on a GPU ({limits} s) fit in the {checks.TOTAL_S} s", limits <= checks.TOTAL_S - 40, limits)
    names = {one.name for one in checks.CHECKS}
    wrong = [goal.what for goal in checks.GOALS
             if not {goal.check, goal.of or goal.check, goal.beyond or goal.check} <= names]
    check("each goal's check exists", not wrong, wrong)
    missing = [one.script for one in checks.CHECKS
               if not (here / one.script).exists() and not (here.parents[1] / one.script).exists()]
    check("each check's script exists", not missing, missing)
    workflows = {one.name.split()[-1] for one in checks.CHECKS if one.spare}
    check("each workflow is run in full size", workflows == {row[0] for row in checks.WORKFLOWS}, workflows)


def test_bundle(bundle, folder):
    """The real thing, as a person runs it on a machine without a GPU."""
    env = dict(os.environ, RILLE_THREADS="1", PATH="/usr/bin:/bin")
    words = [sys.executable, str(here / "run"), "--bundle", bundle, "--json", str(folder / "real.json")]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=400)
    if machine.signs_of_gpu() and "has no librille_cuda.so" in done.stderr:
        return check("a bundle without the CUDA part stops where there is a GPU", done.returncode == 1, done.stderr)
    report = json.loads((folder / "real.json").read_text()) if done.returncode == 0 else {}
    check("the bundle's checks end well", done.returncode == 0, done.stdout + done.stderr)
    if report.get("machine", {}).get("gpus"):
        return
    said = report.get("status") == "no GPU" and "NOTHING OF RILLE RAN ON A GPU" in done.stdout
    check("without a GPU it says so", said, report)
    may_lack = {one.name for one in checks.CHECKS if harness.is_peer(one)} | {"kernels"}
    may_lack |= {f"{kind} {name}" for kind in ("workflow", "full size:") for name in ("nbody", "raytrace")}  # own ones
    check("every check has run as its twin, if PyTorch and a compiler are here", report and all(
        row["gpu"]["status"] == "not run" and (row["cpu"].get("figures") or row["name"] in may_lack)
        for row in report["checks"]), report)
    found = report.get("rille", {}).get("doctor", {}).get("C library", {}).get("found", "")
    check("the bundle's rille ran them", "of the bundle" in found, found)


with tempfile.TemporaryDirectory(prefix="rille-gpu-test-") as scratch:
    test_budget()
    test_corpus(Path(scratch))
    test_watch(Path(scratch))
    test_bundle(os.path.abspath(sys.argv[1]), Path(scratch))
    test_fake(Path(scratch))
finish()
