#!/usr/bin/env python3
"""What spot machines have cost, and what may be rented, of two fakes at once: in the table, as JSON, in a script; and
when one of them lets nobody in. usage: history_test.py RILLE"""
import json, subprocess, sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User

rille = sys.argv[1]
aws, alibaba = User(rille, "aws"), User(rille, "alibaba")


def run(*words, keys=None):
    env = aws.env(**alibaba.told["env"])
    env.update(keys or {})
    Path(aws.root, "providers.json").write_text(json.dumps(dict(aws=aws.settings(), alibaba=alibaba.settings())))
    done = subprocess.run([aws.program, *words], env=env, capture_output=True, text=True, timeout=120, cwd=aws.root)
    return done.returncode, done.stdout, done.stderr


def history(*words, keys=None):
    code, out, err = run("--json", "offers", "--history", *words, keys=keys)
    return code, json.loads(out), err


try:
    code, rows, err = history("--gpu", "A100")
    check("both providers tell what machines have cost", code == 0 and {r["provider"] for r in rows} ==
          {"aws", "alibaba"} and not any("error" in r for r in rows), (code, rows, err))
    check("lowest, median, highest and now are in order", all(
        0 < r["lowest"] <= r["median"] <= r["highest"] and r["lowest"] <= r["now"] <= r["highest"] for r in rows), rows)
    check("the samples are prices of that time", all(
        0 < len(r["samples"]) <= 24 and r["samples"][-1] == r["now"] and
        all(r["lowest"] <= s <= r["highest"] for s in r["samples"]) for r in rows), rows)
    code, some, err = history("--gpu", "A100", "--provider", "aws", "--since", "2h")
    check("of one provider, and less far back", code == 0 and {r["provider"] for r in some} == {"aws"} and
          min(r["from"] for r in some) >= max(r["from"] for r in rows if r["provider"] == "aws")[:10], some)
    code, out, err = run("offers", "--history", "--gpu", "A100")
    check("the table has a line for each, with a sparkline", code == 0 and "SINCE 7d" in out and "CNY" in out and
          len(out.splitlines()) == len(rows) + 1 and any(c in out for c in "▁▂▃▄▅▆▇█"), (out, err))
    code, out, err = run("offers", "--history", "--gpu", "A100", "--limit", "1")
    check("no more lines than --limit", len(out.splitlines()) == 2 and "more: --limit 0" in err, (out, err))

    wrong = {k: "no-such-key" for k in alibaba.told["env"] if "SECRET" in k.upper()}
    code, rows, err = history("--gpu", "A100", keys=wrong)
    check("a provider that refuses the keys is a row, and the other one answers", code == 0 and
          [r["provider"] for r in rows if "error" in r] == ["alibaba"] and
          any(r["provider"] == "aws" and "now" in r for r in rows), (code, rows, err))
    code, out, err = run("offers", "--history", "--gpu", "A100", keys=wrong)
    check("its error stands in the table", code == 0 and "error: " in out and "aws" in out and "error (auth)" in err,
          (code, out, err))
    code, rows, err = history("--gpu", "A100", "--provider", "alibaba", keys=wrong)
    check("alone it is an error", code != 0 and len(rows) == 1 and rows[0]["kind"] == "auth", (code, rows))
    code, out, err = run("--json", "quotas")
    quotas = json.loads(out)
    check("both tell what may be rented", code == 0 and {q["provider"] for q in quotas} == {"aws", "alibaba"} and all(
        q["name"] and q["limit"] >= 0 and q["region"] for q in quotas), (code, quotas, err))
    code, out, err = run("quotas", "--provider", "aws")
    check("one alone, as a table", code == 0 and out.split()[:5] == ["PROVIDER", "REGION", "QUOTA", "LIMIT", "USED"] and
          len(out.splitlines()) == 1 + sum(q["provider"] == "aws" for q in quotas) and "alibaba" not in out, (out, err))
    code, out, err = run("--json", "quotas", keys=wrong)
    check("a provider that refuses the keys is a row",
          code == 0 and [q["provider"] for q in json.loads(out) if "error" in q] == ["alibaba"], (code, out, err))
    code, out, err = run("quotas", "--provider", "alibaba", keys=wrong)
    check("alone it is an error", code != 0 and "error (auth)" in err and "alibaba" in err, (code, out, err))
    code, out, err = run("quotas", "--provider", "local")
    check("one without quotas says so where it is named", code != 0 and "has no quota" in err, (code, out, err))
    Path(aws.root, "quotas.lua").write_text("""local rille = require "rille"
local list = rille.quotas { provider = "aws" }
print(#list, list[1].provider, list[1].limit)
print(select(2, pcall(rille.quotas, { provder = "aws" })).hint)
""")
    code, out, err = run("run", aws.root + "/quotas.lua")
    aws_quotas = [q for q in quotas if q["provider"] == "aws"]
    check("a script has them, too", code == 0 and out.startswith(f"{len(aws_quotas)}\taws\t") and
          "did you mean provider?" in out, (out, err))

    code, rows, err = history("--provider", "local")
    check("one without a history says so where it is named", code != 0 and "has no price history" in rows[0]["error"],
          (code, rows))
    for words, hint in ((("--since", "soon"), ""), (("--rank", "price"), "with --history use"),
                        (("--region", "a,b"), "leave --region out"), (("--provider", "awz"), "aws")):
        code, error, err = history(*words)
        check("offers --history " + " ".join(words), code == 1 and error["error"]["kind"] == "invalid" and
              hint in error["error"].get("hint", ""), (code, error))
    code, out, err = run("offers", "--since", "7d")
    check("--since goes with --history", code != 0 and "--history" in out + err, (code, out, err))

    Path(aws.root, "flow.lua").write_text("""local rille = require "rille"
local list = rille.price_history { gpu = "A100", provider = "aws", since = "1d" }
print(list)
local ok, err = pcall(rille.price_history, { gup = "A100" })
return { type = list[1].type, now = list[1].now, hint = not ok and err.hint }
""")
    code, out, err = run("--json", "run", "flow.lua")
    told = json.loads(out).get("result") if code == 0 else None
    check("a script reads it", code == 0 and told["now"] > 0 and told["type"] and told["hint"] == "did you mean gpu?",
          (code, out, err))
    Path(aws.root, "none.json").write_text("{}")
    alone = subprocess.run([aws.program, "offers", "--history"], env=aws.env(RILLE_PROVIDERS=aws.root + "/none.json"),
                           capture_output=True, text=True, timeout=60, cwd=aws.root)
    check("without a provider that has a history, the error names those that have",
          alone.returncode == 0 and "aws and alibaba do" in alone.stdout,
          (alone.returncode, alone.stdout, alone.stderr))
finally:
    aws.close()
    alibaba.close()
finish()
