---@meta rille
--- Time, signals, pools and child runs: what a run can wait for. Part of the page of `rille.lua`.

---@class rille
local rille = {}

--- Suspends the fiber. A resumed run sleeps only for the remaining time.
---@param name? string the name of the pause; "sleep" by default
---@param duration string|number as in "30s", "5m", "2h", or seconds
---@mark durable
---@async
---@error invalid the duration cannot be read
---@example
--- rille.sleep("30s")
function rille.sleep(name, duration) end

--- A marker for edited code: true, and recorded, in new runs and in runs that have not reached this place yet; false in
--- a run that passed it before the marker was added.
---@param name string the marker's name
---@return boolean new whether this run takes the new code path
---@mark durable
---@async
---@error divergence the record differs from what the script asks for
---@example
--- if rille.patched("check the download") then rille.step("check", function() end) end
function rille.patched(name) end

--- Waits for a value from outside, sent by `rille signal RUN NAME VALUE`.
---@param name string the signal's name
---@param options? rille.SignalOptions how long to wait, and the default
---@return any value the value sent, or the default
---@mark durable
---@async
---@error timeout no value came in time and there is no default
---@example
--- local ok = rille.signal("approve", { timeout = "1d", default = false })
function rille.signal(name, options) end

--- Runs a function while it holds a permit of a pool. The pool limits permits at a time, or permits per time, over all
--- runs of this RILLE_HOME. Waits until a permit is free.
---@param name string the pool's name
---@param options rille.PoolOptions how many permits there are
---@param fn function its body
---@return any ... the results of the body
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
---@field rate? integer permits per time `per`; a full burst after a pause, then evenly spaced
---@field per? string|number that time; 1s by default

--- Runs another script as a run of its own, and waits for its result. It has its own record, leases and budget, and is
--- found again by its id after a crash. Cancelling this fiber cancels that run, which first releases what it holds.
---@param script string its file, relative to this script's folder
---@param args? table the arguments for its `rille.args`
---@param options? rille.RunOptions the run's id
---@return any result the script's result
---@mark durable
---@async
---@error invalid there is no such file, or its text cannot be compiled
---@error state the id belongs to a run of another script or with other arguments; or this code is on an agent
---@error quota too many runs are active in this process
---@error denied the script is not beside this one, and there is no grant to read it
---@example
--- -- fragment
--- local score = rille.run("eval.lua", { model = "out/model" })
function rille.run(script, args, options) end

---@class rille.RunOptions
---@field id? string of the run; a second call with the same id gets the same run's result

---@class rille.SignalOptions
---@field timeout? string the longest wait; for ever by default
---@field default? any the value to return after the timeout

--- The current time, recorded: a resumed run sees the same instants.
---@return number seconds since 1970, with fractions
---@mark durable
---@async
---@example
--- local started = rille.now()
function rille.now() end

return rille
