-- What the calling thread pays for a launch of a user kernel, bound, and for a replay of a compiled function of 400
-- of them: in bursts of 500, before the device is waited for; and the same with the wait in it. Both are noted in the
-- graph; the device's lane, a thread of its own, launches them. launch_floor.cpp is cuLaunchKernel and cuGraphLaunch on
-- the calling thread.
-- usage: rille run launch.lua [--device cuda:0] [--image FILE: the kernel for launch_floor]
local rille = require "rille"
local native = require "rille.native"

local args = rille.args { device = "cpu", image = "", rounds = 100, launches = 500, nodes = 400, replays = 500 }
local replay_rounds = math.ceil(args.rounds / 10)  -- a burst of replays is 200,000 kernels

local source = 'extern "C" __global__ void nothing(int n, float a, const float* x, float* y) {}'

return rille.step("launch", { args = args }, function()
  local dev = rille.device(args.device)
  local ok, kernel = pcall(dev.kernel, dev, source)
  if not ok then
    if type(kernel) == "table" and kernel.kind == "device" then return { not_run = kernel.message } end
    error(kernel)
  end
  if args.image ~= "" then
    local made = kernel:cubin(dev.architecture)
    local file = assert(io.open(args.image, "wb"))
    file:write(made.image)
    file:close()
  end
  local x, y = dev:ones { 64 }, dev:ones { 64 }
  local go = kernel:bind { grid = 1, block = 32 }
  local replay = rille.compile(function()
    for _ = 1, args.nodes do go(64, 0.5, x, y) end
  end)
  for _ = 1, 5 do replay() end                   -- two plain calls, a plain replay, the capture, a replay

  -- Medians of the rounds, us per call, without and with the wait for the device; and the Lua memory that a call takes,
  -- bytes.
  local function burst(rounds, count, fn)
    local calls, whole = {}, {}
    dev:synchronize()
    collectgarbage()
    local before = collectgarbage("count")
    for _ = 1, count do fn() end
    local bytes = (collectgarbage("count") - before) * 1024 / count
    for round = 1, rounds do
      dev:synchronize()
      local began = native.clock()
      for _ = 1, count do fn() end
      calls[round] = (native.clock() - began) / count * 1e6
      dev:synchronize()
      whole[round] = (native.clock() - began) / count * 1e6
    end
    table.sort(calls)
    table.sort(whole)
    local middle = math.ceil(rounds / 2)
    return calls[middle], whole[middle], bytes
  end
  local launch_us, launch_whole_us, launch_bytes = burst(args.rounds, args.launches, function() go(64, 0.5, x, y) end)
  local replay_us, replay_whole_us, replay_bytes = burst(replay_rounds, args.replays, replay)
  local why = (replay:explain() or {}).one_by_one
  if why and why:find "^not captured" then error("the replay is no replay of a graph: " .. why) end
  return { figures = {
    { name = "launch, host", value = launch_us, unit = "us" },
    { name = "launch, with the wait for the device", value = launch_whole_us, unit = "us" },
    { name = "Lua memory of a launch", value = launch_bytes, unit = "bytes" },
    { name = ("replay of %d nodes, host"):format(args.nodes), value = replay_us, unit = "us" },
    { name = ("replay of %d nodes, with the wait for the device"):format(args.nodes), value = replay_whole_us,
      unit = "us" },
    { name = "Lua memory of a replay", value = replay_bytes, unit = "bytes" },
  } }
end)
