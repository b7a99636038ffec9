#!/usr/bin/env python3
"""rille.train with a communicator: two processes train as one with the whole batch, go on from a checkpoint bit for
bit, and end together whatever goes wrong at one of them. usage: ranks_test.py RILLE"""
import os, re, signal, sys

from ranks import Ranks
from tap import check, finish

processes = Ranks(sys.argv[1], "train")
root, start, ended, wait_for = processes.root, processes.start, processes.ended, processes.wait_for

# 50 rows: an epoch ends within a step's batch of 8. The ranks' own weights differ, those of rank 0 count.
parts = """
local source = rille.device("cpu")
source:seed(11)
local data = rille.data.arrays({ source:randn { 50, 16 }, source:randint { 50, high = 4 } },
  { batch = 8 / world, seed = 5, split = 0 })
local model = rille.nn.mlp({ 16, 32, 4 }, { seed = 3 + rank }):to(dev)
local opt = rille.optim.adamw(model:parameters(), { lr = 1e-2 })
local function body(x, y)
  local loss = model(x):cross_entropy(y)
  loss:backward()
  rille.optim.clip_grad_norm(model:parameters(), 0.5)
  opt:step()
  return loss
end
local function tell(result)
  for _, l in ipairs(result.losses) do print(("loss\\t%d\\t%.17g"):format(l.step, l.loss)) end
  local sum = 0
  for _, p in ipairs(model:parameters()) do sum = sum + p.tensor:to("f64"):abs():sum():item() end
  print(("weights\\t%.17g"):format(sum))
end
"""


def losses(result):
    return {int(step): value for step, value in re.findall(r"loss\t(\d+)\t(\S+)", result[1])}


def weights(result):
    found = re.search(r"weights\t(\S+)", result[1])
    return found and found.group(1)


def far(a, b):
    return max((abs(float(a[s]) - float(b[s])) for s in a), default=1) if a.keys() == b.keys() else 1


for name, update in (("called", "body"), ("compiled", "rille.compile(body)"),
                     ("in parts", "rille.compile(body, { accumulate = 2 })")):
    script = parts + f"""
tell(rille.train {{ update = {update}, data = data, steps = 24, log_every = 1, model = model, optimizer = opt,
  communicator = comm }})
"""
    whole = ended(start("whole-" + name.replace(" ", "-"), script, 1))
    halves = ended(start("halves-" + name.replace(" ", "-"), script, 2))
    curves = [losses(r) for r in whole + halves]
    check(f"{name}: all end well", len(curves[0]) == 24 and all(r[0] == 0 for r in whole + halves), (whole, halves))
    check(f"{name}: two ranks train as one with the whole batch", far(curves[0], curves[1]) < 1e-5,
          (curves[0], curves[1]))
    check(f"{name}: both ranks have the same losses and weights",
          curves[1] == curves[2] and weights(halves[0]) == weights(halves[1]), halves)
    check(f"{name}: rank 0 alone logs", "step    24" in halves[0][1] and "step    24" not in halves[1][1], halves)

# Another number of ranks goes on from the same sample, with the same batch of all together.
curve = curves[0]
for world, steps in ((2, 12), (1, 18), (4, 24)):
    script = parts + f"""
tell(rille.train {{ update = rille.compile(body, {{ accumulate = 2 }}), data = data, steps = {steps}, log_every = 1,
  communicator = comm, checkpoint = {{ every = 50, state = {{ model, opt, data }}, directory = "shared" }} }})
"""
    results = ended(start(f"world-{world}", script, world))
    found = [losses(r) for r in results]
    check(f"{world} ranks go on where others ended", all(r[0] == 0 for r in results) and all(
        far({s: v for s, v in curve.items() if s <= steps}, f) < 1e-5 for f in found)
        and ("step     1 " in results[0][1]) == (steps == 12), (found, curve))

# What went before the training does not come into it: a function that was recorded without the exchange.
script = parts + """
local update = rille.compile(body)
local x, y = data:next()
for _ = 1, 4 do update(x, y) end
model:load_state((function()
  local t = {}
  for _, p in ipairs(rille.nn.mlp({ 16, 32, 4 }, { seed = 3 }):parameters()) do t[p.name] = p.tensor end
  return t
end)())
tell(rille.train { update = update, data = data, steps = 6, log_every = 1, model = model, optimizer = opt,
  communicator = comm })
local before = model:parameters()[1].tensor:clone()
print("alone", update(data:next()):item() > 0)
"""
results = ended(start("before", script, 2))
check("a function recorded before exchanges gradients in the training, and none behind it",
      weights(results[0]) and weights(results[0]) == weights(results[1])
      and all("alone\ttrue" in r[1] for r in results), results)

# Everything that a checkpoint holds: dropout (another stream at each rank), running means, averages, a schedule, parts.
trained = """
local source = rille.device("cpu")
source:seed(11)
local data = rille.data.arrays({ source:randn { 50, 16 }, source:randint { 50, high = 4 } },
  { batch = 4, seed = 5, split = 0.2 })
local nn = rille.nn
local model = nn.sequential { nn.linear(16, 32, { seed = rank }), nn.batch_norm(32), nn.dropout(0.2),
  nn.linear(32, 4, { seed = 9 }) }:to(dev)
local opt = rille.optim.adamw(model:parameters(), { lr = 1e-2 })
local ema = rille.optim.ema(model, { decay = 0.9 })
dev:seed(77)
local update = rille.compile(function(x, y)
  local loss = model(x):cross_entropy(y)
  loss:backward()
  opt:step()
  ema:update()
  return loss
end, { accumulate = 2 })
local result = rille.train { update = update, data = data, steps = args.steps, log_every = 1, communicator = comm,
  schedule = rille.optim.cosine { lr = 1e-2, steps = 30, warmup = 3 }, optimizer = opt,
  evaluate_every = 3, evaluate = function(step)
    local loss = rille.train.validation(model, data, { communicator = comm })
    print(("valid\\t%d\\t%.17g"):format(step, loss))
    if step == 12 then mark "going" end
    if step == 12 and args.first:find "killed" and rank == 1 then
      rille.step("hold", function() while true do os.execute("sleep 0.02") end end)
    end
  end,
  checkpoint = { every = 5, state = { data, ema, model, opt }, directory = args.folder .. rank } }
for _, l in ipairs(result.losses) do print(("loss\\t%d\\t%.17g"):format(l.step, l.loss)) end
"""
processes.HEAD = Ranks.HEAD.replace('first = ""', 'first = "", steps = 30, folder = ""')


def validations(result):
    return dict(re.findall(r"valid\t(\d+)\t(\S+)", result[1]))


whole = ended(start("whole-run", trained, 2, folder=f"{root}/whole-"))
check("an undisturbed training ends well", all(r[0] == 0 and len(losses(r)) == 30 for r in whole), whole)
check("the ranks share one validation loss", len(validations(whole[0])) == 10
      and validations(whole[0]) == validations(whole[1]), whole)
check("rank 0 alone writes checkpoints", os.path.exists(f"{root}/whole-0/step-00000030/manifest.json")
      and not os.path.exists(f"{root}/whole-1"), os.listdir(root))

first = f"{root}/killed-"
ranks = start("killed", trained, 2, folder=f"{root}/killed-run-", first=first)
going = all(wait_for(f"{first}going{r}", ranks) for r in range(2))
ranks[1].send_signal(signal.SIGKILL)
results = ended(ranks, 60)
check("the other rank's error names the killed rank",
      going and results[0][0] == 1 and "rank 1 is gone" in results[0][2], results)
again = ended(start("again", trained, 2, folder=f"{root}/killed-run-"))
check("started again they go on from the checkpoint", all(r[0] == 0 for r in again)
      and "step     1 " not in again[0][1] and not os.path.exists(f"{root}/killed-run-1"), again)
check("with the losses of the undisturbed training, bit for bit", losses(again[0]) == losses(whole[0])
      and losses(again[1]) == losses(whole[1]), (losses(again[0]), losses(whole[0])))
late = {s: v for s, v in validations(whole[0]).items() if int(s) > 12}
check("and its validation losses", late == {s: v for s, v in validations(again[1]).items() if int(s) > 12},
      (late, validations(again[1])))

# A damaged checkpoint is rank 0's to find, and an error at both.
for folder, _, files in os.walk(f"{root}/whole-0"):
    for file in files:
        if file == "model.safetensors":
            with open(f"{folder}/{file}", "r+b") as f:
                f.seek(-1, os.SEEK_END)
                last = f.read(1)
                f.seek(-1, os.SEEK_END)
                f.write(bytes([last[0] ^ 1]))
results = ended(start("torn", trained, 2, folder=f"{root}/whole-"), 60)
check("a damaged checkpoint is an error at both", all(r[0] == 1 and "whole-0" in r[2] for r in results)
      and "rank 0:" in results[1][2], results)

failing = """
local model = rille.nn.linear(1, 1, { seed = 1, bias = false }):to(dev)
local opt = rille.optim.sgd(model:parameters(), { lr = 1e-2 OPTIONS })
local step = 0
local data = { next = function() return dev:ones { 2, 1 } end }
local function update(x)
  step = step + 1
  BODY
end
local ok, err = pcall(rille.train, { update = update, data = data, steps = 6, model = model, optimizer = opt,
  log_every = 0, communicator = comm })
if not ok then print("said", err.kind, err.message) error(err, 0) end
for _, s in ipairs(opt:state()) do print("state", s.name, s.tensor:reshape(-1):totable()[1]) end
print("weight", model.weight:item(), "step", step)
"""


def fails(name, body, options="", **more):
    return ended(start(name, failing.replace("BODY", body).replace("OPTIONS", options), 2, **more), 60)


results = fails("nan", """
  if rank == 1 and step == 3 then x = x * (0 / 0) end
  local loss = model(x):mean()
  loss:backward() opt:step()
  return loss""")
check("a loss that is no number at one rank ends both, and names it", all(
    r[0] == 1 and "the loss became NaN or infinite at step 3 at rank 1" in r[2] for r in results), results)
results = fails("raises", """
  if rank == 1 and step == 3 then rille.error { kind = "io", message = "no more paper" } end
  local loss = model(x):mean()
  loss:backward() opt:step()
  return loss""")
check("an error at one rank ends the other with its words", results[1][0] == 1 and "no more paper" in results[1][2]
      and results[0][0] == 1 and "rank 1 failed: no more paper" in results[0][2], results)

first = f"{root}/interrupted-"
ranks = start("interrupted", failing.replace("steps = 6", "steps = 1e6").replace("OPTIONS", "").replace(
    "BODY", """
  local loss = model(x):mean()
  loss:backward() opt:step()
  if step == 20 then mark "going" end
  return loss"""), 2, first=first)
going = all(wait_for(f"{first}going{r}", ranks) for r in range(2))
ranks[0].send_signal(signal.SIGINT)
results = ended(ranks, 60)
check("Ctrl-C at one rank ends the other with an error", going and results[0][0] == 130 and results[1][0] == 1
      and "rank 0 failed" in results[1][2], results)

# 3e34 times the scale of 65536 is beyond f32 at rank 1: no rank takes that step, and both shrink the scale.
scaled = """
  if HUGE then x = x * 3e34 end
  local loss = model(x):mean()
  opt:scaled(loss):backward()
  opt:unscale()
  rille.optim.clip_grad_norm(model:parameters(), 1)
  opt:step()
  return loss"""
options = ", loss_scale = { initial = 65536, interval = 100 }"
results = fails("overflow", scaled.replace("HUGE", "rank == 1 and step == 3"), options)
calm = fails("calm", scaled.replace("HUGE", "false"), options)


def told(result):
    return re.findall(r"(?:state|weight)\t.*", result[1])


check("an overflow at one rank is skipped by both", all(r[0] == 0 for r in results + calm)
      and told(results[0]) == told(results[1]) and "32768" in results[0][1] and "65536" in calm[0][1], (results, calm))


def weight(result):
    found = re.search(r"weight\t(\S+)", result[1])
    return float(found.group(1)) if found else 0


check("and the other five steps were taken", abs((weight(results[0]) - weight(calm[0])) - 0.01) < 1e-6,
      (weight(results[0]), weight(calm[0])))

simple = """
local model = rille.nn.linear(1, 1, { seed = 1 }):to(dev)
local opt = rille.optim.sgd(model:parameters(), { lr = 1e-2 })
local function update(x)
  local loss = (model(x) ^ 2):mean()
  loss:backward() opt:step()
  return loss
end
local n = 0
local data = { next = function() n = n + 1 if n <= 7 then return dev:full { 2, 1, value = n } end end }
"""
results = ended(start("steps", simple + """
rille.train { update = update, data = data, steps = 10 + rank, optimizer = opt, communicator = comm }""", 2), 60)
check("both ranks report different options", all(
    r[0] == 1 and "rank 1 has steps = 11, rank 0 has 10" in r[2] for r in results), results)
results = ended(start("short", simple + """
rille.train { update = update, data = data, steps = 10, optimizer = opt, communicator = comm }""", 2), 60)
check("data that end in the middle of a step end all", all(
    r[0] == 1 and "data:next() has no batch left for rank 1" in r[2] for r in results), results)
results = ended(start("own", simple + """
rille.train { update = function(x) print("x", x:mean():item()) return update(x) end, data = data, steps = 3,
  optimizer = opt, communicator = comm, share_data = args.share }
""".replace("args.share", "args.first ~= 'own'"), 2), 60)
check("of data without a share of their own each rank keeps every second batch",
      [re.findall(r"x\t(\d+)", r[1]) for r in results] == [["1", "3", "5"], ["2", "4", "6"]], results)
results = ended(start("mine", simple + """
rille.train { update = function(x) print("x", x:mean():item()) return update(x) end, data = data, steps = 3,
  optimizer = opt, communicator = comm, share_data = false }
""", 2), 60)
check("with share_data = false every batch is its own", [re.findall(r"x\t(\d+)", r[1]) for r in results] ==
      [["1", "2", "3"]] * 2, results)
results = ended(start("mistakes", simple + """
print(pcall(rille.train, { update = update, data = data, steps = 3, communicator = comm }))
print(pcall(rille.train, { update = update, data = data, steps = 3, optimizer = opt, communicator = "tcp" }))
print(pcall(rille.train, { update = update, data = data, steps = 3, optimizer = opt, comunicator = comm }))
comm:close()
print(pcall(rille.train, { update = update, data = data, steps = 3, optimizer = opt, communicator = comm }))
""", 1), 60)
said = results[0][1]
check("mistakes are errors at once", results[0][0] == 0 and "whose gradients to average" in said and "tcp" in said
      and "comunicator" in said and "communicator is closed" in said, results)
processes.remove()
finish()
