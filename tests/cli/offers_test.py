"""`rille offers` and its memory: who is asked, what is answered from the cache, how old it is, and who is missing.
usage: offers_test.py RILLE"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(__file__))
from remote_cloud import RemoteCloud, serve  # noqa: E402
from tap import check, finish  # noqa: E402

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-offers-")
env = {**os.environ, "RILLE_HOME": root + "/home", "XDG_CONFIG_HOME": root + "/config",
       "RILLE_PROVIDERS": root + "/providers.json"}


def offer(name, **more):
    return {"provider": "x", "id": name, "gpu": "A100", "gpu_count": 8, "gpu_memory_bytes": 80 << 30, "vcpus": 96,
            "memory_bytes": 1 << 40, "region": "here", "spot": False, "price_micros_per_hour": 20_000_000, **more}


class Cloud(RemoteCloud):
    asked = 0
    fail = False
    stock = [offer("a100x8", interconnect="nvswitch", rdma="efa", network_gbps=400, compliance=["gdpr"],
                   reserved_1y_micros_per_hour=12_000_000, reserved_3y_micros_per_hour=8_000_000),
             offer("h100x8", gpu="H100", price_micros_per_hour=30_000_000),
             offer("yuan", gpu_count=4, currency="CNY", price_micros_per_hour=70_000_000,
                   reserved_1y_micros_per_hour=40_000_000),
             offer("t4", gpu="T4", gpu_count=1, gpu_memory_bytes=16 << 30, price_micros_per_hour=500_000)]

    may_answer = threading.Event()

    def answer(self):
        Cloud.asked += 1
        Cloud.may_answer.wait(60)
        if Cloud.fail:
            return 401, {"error": {"kind": "auth", "message": "no such key"}}
        return super().answer()


Cloud.may_answer.set()
server, remote = serve(Cloud)


def settings(**more):
    with open(root + "/providers.json", "w") as f:
        json.dump({"remote": remote, **more}, f)


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120)
    return r.returncode, r.stdout, r.stderr


def offers(*words):
    code, out, err = run("--json", "offers", *words)
    assert code == 0, (code, out, err)
    return json.loads(out)


def ids(*words):
    return [o["id"] for o in offers("--provider", "remote", *words)]


try:
    settings()
    first = offers()
    check("the first time every provider is asked", Cloud.asked == 1 and {o["provider"] for o in first} ==
          {"local", "remote"}, first)
    check("the home has a cache of it, and no journal was needed for the next", os.path.exists(root +
          "/home/cache/offers"))
    os.rename(root + "/home/journal.db", root + "/journal.gone")
    again = offers()
    check("the second time no provider is asked, and the journal is not opened",
          Cloud.asked == 1 and not os.path.exists(root + "/home/journal.db"), again)
    same = [o for o in again if o["provider"] == "remote"]
    check("the answer is the same, with its age", [{k: v for k, v in o.items() if k != "age_seconds"} for o in same] ==
          [o for o in first if o["provider"] == "remote"] and all(o["age_seconds"] >= 0 for o in same), again)
    code, out, err = run("offers")
    check("the table says how old the prices are", "ago: remote" in err and "nvswitch, efa, 400 Gbps" in out and
          Cloud.asked == 1, (out, err))

    whole = {o["id"]: o for o in again}
    reserved = [whole[i].get(f"reserved_{y}_price_per_hour") for i in ("a100x8", "yuan", "t4") for y in ("1y", "3y")]
    check("reserved hours are kept, too", reserved == [12, 8, 40, None, None, None], whole)
    code, out, err = run("offers", "--reserved", "--rate", "CNY=0.1")
    rows = {line.split()[1]: line.split()[-3:] for line in out.splitlines()}
    check("and shown", "1 YEAR  3 YEARS" in out and rows["a100x8"] == ["$20.00", "$12.00", "$8.00"] and
          rows["yuan"] == ["$7.00", "$4.00", "-"] and "1 YEAR" not in run("offers")[1] and Cloud.asked == 1, out)
    check("a narrower question is answered by the same cache", ids("--gpu", "A100:8") == ["a100x8"] and
          Cloud.asked == 1)
    check("by links", ids("--interconnect", "nvlink") == ["a100x8"])
    check("by rules", ids("--compliance", "gdpr") == ["a100x8"])
    check("by network", ids("--network", "400") == ["a100x8"])
    check("by several models", ids("--gpu", "H100,A100:8") == ["a100x8", "h100x8"])
    check("each in its own number", ids("--gpu", "T4", "--gpu", "A100:4,H100:4") == ["t4", "yuan"])
    check("the count is of those that say none", ids("--gpu", "T4,A100:4", "--count", "1") == ["t4", "yuan"])
    check("by the memory of a GPU, as cards are sold", ids("--gpu-memory", "80GB") == ["a100x8", "h100x8", "yuan"] and
          ids("--gpu-memory", "16GB", "--max-price", "1") == ["t4"])
    check("by maker", ids("--gpu-vendor", "nvidia") == ids() and ids("--gpu-vendor", "AMD") == [])
    check("by the disk, of which nothing is known", ids("--disk-kind", "nvme") == [])
    code, out, err = run("offers", "--gpu", "any,A100")
    check("a list is of models", code == 1 and "\"any\" is not a model" in err, (code, err))
    check("by region: nothing", ids("--region", "elsewhere") == [])
    check("by price, which yuan have none of without a rate", ids("--max-price", "25") == ["t4", "a100x8"])
    check("and with one", ids("--max-price", "25", "--rate", "CNY=0.14") == ["t4", "yuan", "a100x8"])
    check("a price per TFLOP", ids("--rank", "price_per_tflop", "--gpu", "any") == ["h100x8", "t4", "a100x8", "yuan"],
          offers("--rank", "price_per_tflop", "--gpu", "any"))
    check("tokens per dollar, by what was measured",
          ids("--rank", "tokens_per_dollar", "--tokens", "T4=100,H100=9500") == ["h100x8", "t4", "a100x8", "yuan"],
          offers("--rank", "tokens_per_dollar", "--tokens", "T4=100,H100=9500"))
    check("so far one call", Cloud.asked == 1, Cloud.asked)
    code, out, err = run("offers", "--limit", "2", "--rank", "price_per_gpu_gb")
    check("rows are limited, and the rest is counted", len(out.splitlines()) == 3 and "3 more" in err, (out, err))

    def hint(*words):
        code, out, err = run("offers", "--provider", "remote", *words)
        return (code, out) == (0, "no offers match\n") and err

    for words, wanted in ((("--gpu", "H1O0"), "did you mean --gpu H100?"),
                          (("--gpu", "h1o0:8"), "did you mean --gpu H100?"),
                          (("--gpu", "A100x8"), "did you mean --gpu A100:8?"),
                          (("--gpu", "RTXA4001"), "did you mean --gpu 'RTX A4000'?"),
                          (("--gpu", "A100:16,H1O0"), "did you mean --gpu H100?"),
                          (("--gpu", "A100:16,T4:3"), "t4 has 1 of them here: --gpu T4:1"),
                          (("--gpu-memory", "96GB"), "the most that a GPU has here is 80 GB: lower --gpu-memory"),
                          (("--gpu-vendor", "amd"), "fits but for --gpu-vendor amd"),
                          (("--disk-kind", "nvme"), "fits but for --disk-kind nvme"),
                          (("--gpu", "foo"), "no provider here has a GPU called 'foo': `rille offers` lists"),
                          (("--gpu", "B200"), "no provider that was asked has --gpu B200: `rille offers` lists"),
                          (("--region", "hre"), "did you mean --region here?"),
                          (("--region", "far,away"), "there is some in: here. A cloud is asked only in the `regions`"),
                          (("--gpu", "A100", "--count", "8", "--max-price", "3"),
                           "the cheapest that fits is a100x8 at $20.00 an hour: raise --max-price"),
                          (("--gpu", "A100:4", "--max-price", "3"), "--rate CNY=DOLLARS"),
                          (("--gpu", "A100:4", "--max-price", "3", "--rate", "CNY=0.1"), "yuan at $7.00 an hour"),
                          (("--gpu", "A100:16"), "a machine has 4 or 8 of them here: --gpu A100:8; for more, rent "
                           "several"),
                          (("--gpu", "T4:2"), "a machine has 1 of them here: --gpu T4:1"),
                          (("--gpu", "A100-40GB:8"), "A100 here has 80 GB: --gpu A100"),
                          (("--vcpus", "1000"), "the most that fits the rest is 96: lower --vcpus"),
                          (("--memory", "9TB", "--gpu", "T4"), "the most that fits the rest is 1.1 TB: lower --memory"),
                          (("--gpu", "H100", "--compliance", "gdpr"), "h100x8 in here fits but for --compliance gdpr"),
                          (("--gpu", "T4:2", "--vcpus", "1000"), "no offer has count, vcpus together; without "
                           "them there is t4")):
        check("nothing, and what to change: " + " ".join(words), wanted in (hint(*words) or ""),
              run("offers", "--provider", "remote", *words))
    check("nor where there is no better", "did you mean" not in hint("--gpu", "B200"))
    check("all of it from the cache", Cloud.asked == 1, Cloud.asked)
    with open(root + "/asks.lua", "w") as f:
        f.write('local rille = require "rille"\n'
                'for _ = 1, 3 do print(#rille.offers { gpu = "A100:16", providers = { "remote" } }) end\n'
                'print(#rille.offers { gpu = "H1O0", providers = { "remote" } })\n'
                'print(#rille.offers { gpu = "H100,A100", providers = { "remote" } })\n'
                'for _, o in ipairs(rille.offers { gpu = { "T4", "A100:8" }, gpu_memory = "40GB" }) '
                'do print(o.id) end\n'
                'print(select(2, pcall(rille.offers, { gpuu = "A100" })).message)\n')
    code, out, err = run("run", root + "/asks.lua")
    check("a script that asks for nothing gets one hint what to change", (code, out) == (0, "0\n0\n0\n0\n0\na100x8\n"
          "offers has no option 'gpuu'\n") and 'several models are a list: gpu = { "H100", "A100" }' in err and
          err.count('a machine has 4 or 8 of them here: gpu = "A100:8"') == 1 and
          err.count('did you mean gpu = "H100"?') == 1, (code, out, err))
    Cloud.asked = 1

    offers("--refresh")
    check("--refresh asks", Cloud.asked == 2)
    offers("--max-age", "0s")
    check("and so does an age of nothing", Cloud.asked == 3)
    offers("--spot")
    check("spot prices are another question", Cloud.asked == 4)
    settings(rates={"CNY": 0.14})
    check("a rate in the settings holds, and asks nobody", ids("--max-price", "25") == ["t4", "yuan", "a100x8"] and
          Cloud.asked == 4)
    yuan = [o for o in offers() if o["id"] == "yuan"][0]
    check("an offer that is converted says both", yuan["currency"] == "CNY" and yuan["price_per_hour"] == 70 and
          abs(yuan["dollars_per_hour"] - 9.8) < 1e-9, yuan)

    for damage in (lambda b: b[:100], lambda b: b"x" * 5000, lambda b: b[:-9] + b"?" + b[-8:]):
        with open(root + "/home/cache/offers", "rb") as f:
            whole = f.read()
        with open(root + "/home/cache/offers", "wb") as f:
            f.write(damage(whole))
        before = Cloud.asked
        got = ids()
        check("a damaged cache counts as none, and is written anew", len(got) == 4 and Cloud.asked == before + 1 and
              ids() == got and Cloud.asked == before + 1, got)

    Cloud.fail = True
    failing = offers("--refresh")
    check("a provider that fails stands in the table, beside the others",
          any(o.get("error") and o["provider"] == "remote" for o in failing) and
          any(o["provider"] == "local" and "id" in o for o in failing), failing)
    code, out, err = run("offers", "--max-age", "0s")
    check("a table has offers only; failed providers are named beside it", code == 0 and "such key" not in out and
          "local" in out and "remote" in err and "no such key" in err, (out, err))
    before = Cloud.asked
    offers("--max-age", "0s")
    check("and is asked again the next time", Cloud.asked == before + 1)
    check("its earlier answer is still used where its age is allowed", len(ids("--max-age", "1h")) == 4)
    Cloud.fail = False

    with open(root + "/providers.json", "w") as f:
        json.dump({"remote": {**remote, "url": remote["url"] + "/"}}, f)
    before = Cloud.asked
    offers()
    check("other settings are another source", Cloud.asked == before + 1)

    # The user's own hosts, through a stand-in for ssh that records its hosts: one is off.
    calls = root + "/calls"
    with open(root + "/ssh", "w") as f:
        f.write(f"""#!/bin/sh
case "$*" in
*gpu1*) echo gpu1 >>{calls}; echo "ssh: connect to host gpu1 port 22: Connection timed out" >&2; exit 255 ;;
*) echo gpu2 >>{calls}; printf 'cpus 8\\nmemory 16000000\\nlive 0\\n' ;;
esac
""")
    os.chmod(root + "/ssh", 0o755)
    env["PATH"] = f"{root}:{env['PATH']}"

    def hosts(*names):
        with open(root + "/providers.json", "w") as f:
            json.dump({"ssh": {"hosts": list(names)}}, f)

    def asked():
        with open(calls) as f:
            return sorted(f.read().split())

    hosts("me@gpu1", "me@gpu2")
    first, again = offers(), offers()
    silent = [o for o in again if o.get("error")]
    check("a host that is off is not asked again at once, and is named with its age",
          asked() == ["gpu1", "gpu2"] and len(silent) == 1 and "gpu1" in silent[0]["error"] and
          silent[0]["kind"] == "network" and silent[0]["age_seconds"] >= 0 and
          any(o.get("id") == "me@gpu2" for o in again) and
          [o["error"] for o in first if o.get("error")] == [silent[0]["error"]], (asked(), again))
    code, out, err = run("offers")
    check("so does the table", code == 0 and "me@gpu2" in out and "cannot be reached" in err and " ago)" in err and
          "--refresh asks again" in err and asked() == ["gpu1", "gpu2"], (out, err))
    offers("--refresh")
    check("--refresh asks it again", asked() == ["gpu1", "gpu1", "gpu2", "gpu2"], asked())

    # A cloud that takes the question and says nothing, beside a host that answers.
    with open(root + "/providers.json", "w") as f:
        json.dump({"ssh": {"hosts": ["me@gpu2"]}, "remote": remote}, f)
    Cloud.may_answer.clear()
    rows = {o["provider"]: o for o in offers("--refresh", "--timeout", "1s")}
    check("a cloud that hangs is in the list, after the given time", "id" in rows["ssh"] and
          rows["remote"]["kind"] == "timeout" and "longer than 1" in rows["remote"]["error"], rows)
    rows = {o["provider"]: o for o in offers()}
    check("without one it is left behind where others have offers, also from the cache", "id" in rows["ssh"] and
          "age_seconds" in rows["ssh"] and rows["remote"]["error"] == "no answer within 10s" and
          "--timeout 30s" in rows["remote"]["hint"], rows)
    Cloud.may_answer.set()

    hosts("me@gpu1")
    code, out, err = run("offers", "--provider", "ssh")
    code_again, out, err_again = run("offers", "--provider", "ssh")
    check("if all of them are off, that is remembered, too", code == code_again != 0 and "(asked" not in err and
          "cannot be reached" in err_again and "(asked" in err_again and asked().count("gpu1") == 3, (err, err_again))
    with open(root + "/providers.json", "w") as f:
        json.dump({"remote": remote}, f)

    for words, kind, hint in ((("--interconnect", "nvlnk"), "invalid", "nvlink"),
                              (("--compliance", "gpdr"), "invalid", "gdpr"),
                              (("--rank", "price_per_tflops"), "invalid", "price_per_tflop"),
                              (("--provider", "remot"), "invalid", "remote"),
                              (("--rate", "CNY"), "invalid", ""), (("--max-age", "soon"), "invalid", ""),
                              (("--timeout", "soon"), "invalid", ""), (("--timeout", "0s"), "invalid", ""),
                              (("--rank", "tokens_per_dollar"), "invalid", "tokens_per_second")):
        code, out, _ = run("--json", "offers", *words)
        error = json.loads(out).get("error", {})
        check("offers " + " ".join(words), code == 1 and error.get("kind") == kind and hint in error.get("hint", ""),
              (code, out))
    with open(root + "/providers.json", "w") as f:
        f.write('{"rates": {"yuan": 1}}')
    code, out, err = run("offers")
    check("a rate in the settings that is none", code == 1 and "yuan" in err and "config" in err, (code, err))
finally:
    server.shutdown()
    shutil.rmtree(root, ignore_errors=True)
finish()
