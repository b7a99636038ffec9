---@meta rille
--- Time, signals, pools and other runs: what a run waits for. Adds to `rille.lua`, and stands on its page.

---@class rille
local rille = {}

--- Lets the fiber rest. A resumed run rests only for what is left.
---@param name? string the name of the pause; "sleep" by default
---@param duration string|number as in "30s", "5m", "2h", or seconds
---@mark durable
---@async
---@error invalid the duration cannot be read
---@example
--- rille.sleep("30s")
function rille.sleep(name, duration) end

--- Tells edited code whether this run is to take the new way: true, and recorded, in new runs and in those that have
--- not come to this place yet; false in a run that came past it before the marker was put there.
---@param name string the marker's name
---@return boolean new whether the code that it guards is this run's
---@mark durable
---@async
---@error divergence the record has other entries than the script asks for
---@example
--- if rille.patched("check the download") then rille.step("check", function() end) end
function rille.patched(name) end

--- Waits for a value from outside, given by `rille signal RUN NAME VALUE`.
---@param name string the signal's name
---@param options? rille.SignalOptions how long to wait, and what to take then
---@return any value what was sent, or the default
---@mark durable
---@async
---@error timeout nothing came in time and there is no default
---@example
--- local ok = rille.signal("approve", { timeout = "1d", default = false })
function rille.signal(name, options) end

--- Runs a function while it holds a permit of a pool, of which there are so many at a time, or so many in a time, over
--- all runs of this RILLE_HOME. Waits until it gets one.
---@param name string the pool's name
---@param options rille.PoolOptions how many permits there are
---@param fn function its body
---@return any ... what the body returns
---@mark durable
---@async
---@error invalid neither slots nor rate is given
---@error state on an agent
---@example
--- local answer = rille.pool("api", { rate = 10, per = "1s" }, function()
---   return rille.step("ask", function() return 42 end)
--- end)
function rille.pool(name, options, fn) end

---@class rille.PoolOptions
---@field slots? integer permits that may be held at a time
---@field rate? integer permits that are given in the time `per`; so many at once after a rest, then evenly
---@field per? string|number that time; 1s by default

--- Runs another script as a run of its own, and waits for its result. It has its own record, leases and budget, and is
--- found again by its id after a crash. If this fiber is cancelled, so is that run, which first releases what it holds.
---@param script string its file, as seen from the folder of this script
---@param args? table what its `rille.args` reads
---@param options? rille.RunOptions the id it is to have
---@return any result what the script returns
---@mark durable
---@async
---@error invalid there is no such file, or its text cannot be compiled
---@error state the id belongs to a run of another script or other arguments; or this code is on an agent
---@error quota too many runs at once in this process
---@example
--- -- fragment
--- local score = rille.run("eval.lua", { model = "out/model" })
function rille.run(script, args, options) end

---@class rille.RunOptions
---@field id? string of the run; whoever asks for the same id gets the same run's result

---@class rille.SignalOptions
---@field timeout? string the longest wait; for ever by default
---@field default? any the value to take when the time is up

--- Gives the time of day, recorded: a resumed run sees the same instants.
---@return number seconds since 1970, with fractions
---@mark durable
---@async
---@example
--- local started = rille.now()
function rille.now() end

return rille
