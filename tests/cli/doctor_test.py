#!/usr/bin/env python3
"""`rille doctor` about providers: the rows of the settings file, the keys of one provider on its fake, policy
documents, which the manual's pages repeat, and `--live`, on this machine and where it is interrupted.
usage: doctor_test.py RILLE"""
import json, os, re, shutil, signal, subprocess, sys, tempfile, urllib.request
from pathlib import Path

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
top = Path(__file__).resolve().parent.parent.parent
root = tempfile.mkdtemp(prefix="rille-doctor-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", HOME=root, NO_COLOR="1",
           RILLE_THREADS="1")
for name in [n for n in env if n.startswith(("AWS_", "VAST_"))] + ["RILLE_PROVIDERS"]:
    env.pop(name, None)
words = [sys.executable, "-B", str(top / "tests/contract/fakes/aws.py")]
fake = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
told = json.loads(fake.stdout.readline())
url = f"http://127.0.0.1:{told['port']}/_fake/"


def control(what, **with_):
    body = json.dumps(with_).encode() if with_ or what != "state" else None
    return json.loads(urllib.request.urlopen(urllib.request.Request(url + what, body), timeout=20).read())


def doctor(*words, **more):
    r = subprocess.run([rille, "doctor", *words], env=dict(env, **more), capture_output=True, text=True, timeout=120,
                       cwd=root, stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout, r.stderr


def rows(text):
    return {row["what"]: row for row in json.loads(text)}


def of_provider(*words, code=0, **more):
    got, out, err = doctor("--json", *words, **more)
    check(f"doctor {' '.join(words)}: exit code {code}", got == code, (got, out, err))
    one = json.loads(out)[0]
    return {row["what"]: row for row in one["checks"]}, one, out


def settings(**values):
    Path(root, "providers.json").write_text(json.dumps(values))
    return dict(RILLE_PROVIDERS=root + "/providers.json")


def settings_of_aws(**more):
    return settings(aws=dict(told["settings"], regions=["us-east-1", "eu-central-1"], **more))


try:
    # Without arguments: shows the configuration, and calls no provider.
    out = rows(doctor("--json")[1])
    check("without settings there is this machine", out["providers"]["found"] == "local", out["providers"])
    check("and no provider is called unknown to this version", not any("later" in r["costs"] for r in out.values()))
    aws = dict(told["env"], **settings_of_aws())
    code, text, _ = doctor("--json", **aws)
    out = rows(text)
    check("each provider of the settings is a row", code == 0 and "verified: fake" in out["aws"]["found"] and
          "guest" in out["aws"]["found"], out.get("aws"))
    check("and no provider was called", control("state")["calls"] == [])
    wrong = settings(awz={})
    code, text, _ = doctor("--json", **wrong)
    out = rows(text)
    check("wrong settings are reported", code == 1 and out["providers"]["state"] == "missing" and
          "aws" in out["providers"]["costs"], out["providers"])
    check("the journal is not blamed", out["journal"]["state"] == "warning", out["journal"])

    # One provider's keys.
    aws = dict(told["env"], **settings_of_aws())
    out, one, text = of_provider("--provider", "aws", **aws)
    check("the keys' identity, and where they were found", one["identity"]["who"].startswith("arn:aws:iam::") and
          one["identity"]["account"] == "123456789012" and out["credentials"]["found"] == "the environment", one)
    check("a young key is fine", out["key age"]["state"] == "ok" and out["key age"]["found"].startswith("30 days"),
          out["key age"])
    check("each region answers", [out[f"region {r}"]["state"] for r in ("us-east-1", "eu-central-1")] == ["ok"] * 2)
    check("quotas are shown", any("P instances" in q["name"] and q["limit"] == 768 for q in one["quotas"]), one)
    check("the clock is right", out["clock"]["state"] == "ok", out["clock"])
    check("dead man and verification are shown", out["dead man"]["found"].startswith("guest") and
          out["verified"]["found"] == "fake and moto, signer = vendor SDK", out)
    check("no secret is shown", not any(s in text for s in told["secrets"]))
    check("nothing was rented", not any(c["operation"] == "RunInstances" for c in control("state")["calls"]))
    control("set", key_age_days=91)
    out, _, _ = of_provider("--provider", "aws", **aws)
    check("a key older than 90 days is warned of", out["key age"]["state"] == "warning" and
          "90 days" in out["key age"]["costs"], out["key age"])
    table = doctor("--provider", "aws", **aws)[1]
    check("the table says the same", re.search(r"^key age +warning +91 days", table, re.M), table)
    control("fault", kind="skew", seconds=7200)
    out, _, _ = of_provider("--provider", "aws", **aws)
    check("a wrong clock is reported", out["clock"]["state"] == "warning" and
          re.search(r"(2h|1h59m\d*s?) ahead", out["clock"]["found"]), out["clock"])
    control("calm")
    bad = dict(aws, AWS_SECRET_ACCESS_KEY="x" * 40)
    out, _, text = of_provider("--provider", "aws", code=1, **bad)
    check("refused keys are reported, with what to do", out["credentials"]["state"] == "missing" and
          out["credentials"]["costs"], out)
    temporary = dict(aws, **told["temporary"])
    out, _, _ = of_provider("--provider", "aws", **temporary)
    check("a temporary key has no age", out["key age"]["state"] == "unknown", out["key age"])
    out, _, _ = of_provider("--provider", "vast", code=1)
    check("one that no settings name is tried with none", "VAST_API_KEY" in out["credentials"]["costs"], out)
    out, _, _ = of_provider("--provider", "local")
    check("this machine needs no credentials", out["credentials"]["found"] == "none are needed" and
          out["offers"]["state"] == "ok", out)
    _, one, _ = of_provider("--provider", "all", **aws)
    check("all begins with this machine", one["provider"] == "local", one)
    code, _, err = doctor("--provider", "awz")
    check("a name that is misspelt", code == 2 and "did you mean 'aws'" in err, (code, err))
    check("a policy is one provider's", doctor("--policy")[0] == 2)

    # Policy documents.
    code, text, err = doctor("--provider", "aws", "--policy")
    check("the policy alone is printed, without keys", code == 0 and "Statement" in json.loads(text) and not err, text)
    for name in "aws alibaba tencent huawei gcp azure kubernetes".split():
        document = json.loads(doctor("--provider", name, "--policy")[1])
        page = (top / f"docs/manual/providers/{name}.md").read_text()
        blocks = re.findall(r"```json\n(.*?)```", page, re.S)
        check(f"{name}: the manual's page has that document", any(json.loads(b) == document for b in blocks), document)
    named = {one["provider"] for one in json.loads(doctor("--provider", "all", "--policy", "--json")[1])}
    check("all have something to say", {"local", "ssh", "vast", "runpod", "lambda"} <= named, named)

    # A short rent of this machine.
    code, text, err = doctor("--live", "local", "--json")
    out = json.loads(text) if code == 0 else {}
    check("live: a rent of this machine, step by step", out.get("ok") and [s["step"] for s in out["steps"]] ==
          ["credentials", "rent", "list", "call", "dead man", "release", "gone"], (code, text, err))
    code, text, err = doctor("--live", "local")
    check("live: each step is printed at once", code == 0 and re.search(r"^call +ok +[0-9.]+ s", text, re.M) and
          "all is well" in text, (code, text, err))
    check("live: a name that is misspelt", doctor("--live", "locl")[0] == 2)
    listed = subprocess.run([rille, "leases", "--json"], env=env, capture_output=True, text=True, timeout=60)
    check("live: nothing is rented afterwards", json.loads(listed.stdout) == [], listed)

    # On a cloud whose machine cannot be reached: refused by the cap, interrupted, killed.
    traits = dict(traits=dict(visibility_lag_ms=300, create_timeout_ms=1000))
    aws = dict(told["env"], **settings_of_aws(**traits))
    before = len(control("state")["machines"])
    code, text, err = doctor("--live", "aws", "--gpu", "T4", "--max-cost", "0.0001", "--json", **aws)
    check("live: the cap holds", code == 1 and json.loads(text)["error"]["kind"] == "budget" and
          len(control("state")["machines"]) == before, (code, text, err))

    def begin():
        process = subprocess.Popen([rille, "doctor", "--live", "aws", "--gpu", "T4"], env=dict(env, **aws), cwd=root,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("list "):
                return process, lines
        return process, lines + [process.stderr.read()]

    process, lines = begin()
    check("live: the machine is in the list, by its tag", " ok " in lines[-1], lines)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    check("live: Ctrl-C gives it back", process.returncode == 130 and control("state")["alive"] == 0 and
          "release" in out, (process.returncode, out, err))
    process, lines = begin()
    process.kill()
    process.communicate(timeout=60)
    check("live: killed, it leaves a machine", control("state")["alive"] > 0)
    listed = subprocess.run([rille, "ps", "--json"], env=dict(env, **aws), capture_output=True, text=True, timeout=60)
    subprocess.run([rille, "gc", "--now", json.loads(listed.stdout)[0]["id"]], env=dict(env, **aws), timeout=60,
                   capture_output=True)
    check("live: which `rille gc --now` ends", control("state")["alive"] == 0, control("state")["machines"])
finally:
    fake.stdin.close()
    fake.wait(10)
    shutil.rmtree(root, ignore_errors=True)
finish()
