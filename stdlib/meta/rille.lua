---@meta rille
--- The words of a script: `local rille = require "rille"`.
---
--- A durable verb takes its name first, its options next and its function last. Its result is recorded under its name,
--- and a resumed run takes the recorded result instead of doing the work again.

---@class rille
---@field home string the run's own folder; it outlives the process, and `checkpoint = rille.home` keeps checkpoints
---there
---@field run_id string the run's name in `rille ps`, `rille resume` and the journal
---@field script_directory string where the script lies, for the files beside it
local rille = {}

--- The device to compute on.
---@param name? string "cpu", "cuda:0", "cuda:GPU-..."; nil: the first CUDA device or the CPU, or what RILLE_DEVICE says
---@return Device device the same object at every call
---@mark ephemeral
---@error device there is no such device here
---@error invalid that is no device's name
---@example
--- local dev = rille.device()
function rille.device(name) end

--- All devices here: CUDA devices, then the CPU. None is opened by this.
---@return table devices a list
---@mark ephemeral
function rille.devices() end

--- Takes the run's arguments (`--steps 500 --fast`) over defaults.
---
--- The type of a default says what is accepted: a number, a boolean, a text, or a list written `a,b,c`.
---@param defaults? table names with their default values; nil gives the arguments as they are
---@return table arguments the defaults, overridden by what the command line gave
---@mark deterministic
---@error invalid an argument that `defaults` does not name, or a value of the wrong type
---@example
--- local args = rille.args { data = "docs", steps = 300, fast = false }
function rille.args(defaults) end

--- Runs a function once, records what it returns, and gives that back on every resume.
---
--- The body is the place for effects: files, programs, services. It gets the number of the attempt, counted from 1, and
--- its `Step`. An error that says it is retryable is tried again after a growing, seeded pause. The body must return
--- its results, not assign them: a change of an outer local or of a captured table is refused.
---@param name string the step's name; with the fiber and the number of its occurrence it is the step's identity
---@param options? rille.StepOptions how to retry, and what the result depends on
---@param fn fun(attempt: number, ctx: Step): any returns one value that JSON can hold
---@return any value the recorded value
---@mark durable
---@async
---@error state the body changed a variable that is declared outside of it, or called a durable verb; or, with the code
---`step_uncertain`, a step of effect "once" was cut off and nobody knows how far it came; or `step_poisoned`
---@error timeout the code is `step_timeout`: an attempt, or all of them, took too long
---@error divergence a resumed script asks for another step than the journal holds at this place
---@error invalid the body returned something that cannot be recorded
---@example
--- local id = rille.step("register", { retry = 3 }, function(attempt)
---   return register_model("demo")
--- end)
function rille.step(name, options, fn) end

---@class rille.StepOptions
---@field retry? number|rille.Retry attempts in all, or the whole policy; by default 5, for retryable errors only
---@field args? any what the result depends on; a resume with other values is a divergence
---@field effect? string "idempotent" (the default: a body that was cut off runs again), "pure" (the same, and nothing
---is written before it ends), "once" (it does not run again) or "tx" (what it writes to `ctx.db` happens exactly once)
---@field timeout? string the longest that one attempt may take; the body is cancelled with a `timeout`, and tried again
---@field total_timeout? string the longest from the first attempt on, also over crashes
---@field heartbeat_timeout? string the longest between two heartbeats of one attempt
---@field crashes_max? number how many crashes of the process inside the body are tried again, by default 5 where
---`retry` is given; one more raises `state` with the code `step_poisoned`
---@field probe? fun(ctx: Step): string, any for effect "once": asked on resume what came of a body that was cut off;
---gives "done" and the result, or "absent"
---@field db? string for effect "tx": the SQLite file, as seen from the script's folder
---@field sim? table for `rille simulate` and `rille plan`: `duration` and `result`, which stand for the body there

---@class Step
---@field attempt number the attempt, from 1
---@field token string a UUID that is this step's in every attempt and after every resume: a key for services
---@field last any the last heartbeat of an earlier attempt, or nil
---@field db Database of a step with effect "tx": its transaction
local Step = {}

--- Keeps a value for the next attempt of this step, which finds it as `ctx.last`, also after a crash.
---
--- At most one a second is written, the newest.
---@param value any data, up to 64 KiB
---@mark step-only
---@error state the step has ended
---@error invalid the value is not data, or too large
---@example
--- rille.step("download", { retry = 5 }, function(attempt, ctx)
---   for part = (ctx.last or 0) + 1, 100 do
---     fetch(part)
---     ctx:heartbeat(part)
---   end
--- end)
function Step:heartbeat(value) end

---@class Database
local Database = {}

--- Runs statements in the transaction of a step with effect "tx", and gives the number of rows that they changed.
---@param sql string one statement, or several without values
---@param ... any a value for each `?`, or one table for `:names`
---@return number changed rows, those of triggers included
---@mark step-only
---@error invalid the statement is wrong, breaks a constraint, or would end the transaction
---@error state the transaction is over
---@example
--- rille.step("add", { effect = "tx", db = "my.db" }, function(attempt, ctx)
---   ctx.db:exec("UPDATE counter SET n = n + ?", 1)
--- end)
function Database:exec(sql, ...) end

--- Runs a statement in the transaction of a step with effect "tx", and gives its rows.
---@param sql string the statement
---@param ... any a value for each `?`, or one table for `:names`
---@return table rows a list of tables by the names of columns; a NULL is nil
---@mark step-only
---@error invalid the statement is wrong, or a whole number is beyond 2^53
---@error state the transaction is over
---@example
--- rille.step("sum", { effect = "tx", db = "my.db" }, function(attempt, ctx)
---   return ctx.db:query("SELECT sum(n) AS n FROM counter")[1].n
--- end)
function Database:query(sql, ...) end

---@class rille.Retry
---@field attempts? number attempts in all, by default 5
---@field initial? string first pause, by default "1s"
---@field factor? number growth of the pause, by default 2
---@field cap? string longest pause, by default "1m"
---@field only_retryable? boolean true leaves errors that are not marked retryable alone
---@field max_elapsed? string no attempt begins later than this after the first
---@field on_exhausted? string "error" (the default), or "pause": the run is suspended after the last attempt, and
---`rille resume` grants as many again

--- Rents an instance; it lives until the scope that rented it ends.
---@param name string the lease's name, its identity for the whole run
---@param options? rille.RentOptions what to look for
---@return Instance box ready for `stage`, `call` and `exec`
---@mark durable
---@async
---@nodiscard
---@error capacity nothing that fits can be rented at present
---@error budget the run's budget does not cover it
---@error invalid an unknown option or a value that it cannot have
---@example
--- local box = rille.rent("trainer", { gpu = "A100", spot = true, max_price = 2.50, ttl = "6h" })
function rille.rent(name, options) end

---@class rille.RentOptions
---@field gpu? string "any" (a GPU that Rille runs on, or this machine's CPU), "cpu", a model as in "A100", or a model
---and a count as in "A100:8"; without it a GPU or none
---@field count? number GPUs per machine
---@field spot? boolean true accepts machines that can be taken back
---@field max_price? number dollars per hour
---@field region? string where; anywhere by default
---@field vcpus? number at least so many
---@field memory? string at least so much, as in "32GB"
---@field regions? string|table in one of these regions
---@field providers? string|table from one of these providers
---@field interconnect? string between the GPUs "pcie", "nvlink" (also with switches), "nvswitch", "xgmi"; between
---machines "rdma" (any), "infiniband", "roce", "efa", "erdma"
---@field compliance? string|table all of these tags: "gdpr", "hipaa", "mlps3", "fedramp"
---@field network_gbps? number gigabits per second at least
---@field rank? string what comes first: "price" (the default), "price_per_tflop", "price_per_gpu_gb", or
---"tokens_per_dollar"
---@field rates? table what currencies are worth in dollars, as in { CNY = 0.14 }
---@field tokens_per_second? table what you measured on one GPU, as in { H100 = 9500 }: for rank "tokens_per_dollar"
---@field provider? string only this provider, as in "local"
---@field ttl? string the longest that it may live; a budget can shorten it
---@field min_ttl? string refuse a shorter life than this
---@field orphan_after? string how long the instance waits for a lost runner before it ends itself
---@field idle_after? string end it when nobody has used it for so long: no call, no file, no busier than `idle_below`
---@field idle_below? number how busy an unused machine may be, from 0 to 1, by default 0.05
---@field disk? string a disk to order with the machine, as in "200GB"
---@field price? number dollars per hour, where the provider does not say so
---@field on_loss? string "replace" goes on with another machine when this one is lost, "fail" raises an error
---@field unguarded? boolean true accepts machines that nobody ends when the runner is lost for ever
---@field hold_ttl? string how long it is kept for a run that was suspended or has diverged, by default "12h"

--- Rents as `rille.rent` does, but gives nil and the error when nothing that fits can be rented.
---@param name string the lease's name
---@param options? rille.RentOptions what to look for
---@return Instance? box nil when there is no capacity
---@return table? err the `capacity` error
---@mark durable
---@async
---@nodiscard
---@error budget the run's budget does not cover it
---@example
--- local box, err = rille.try_rent("big", { gpu = "H100:8" })
--- if not box then print("no capacity: " .. err.message) end
function rille.try_rent(name, options) end

--- Lists what can be rented, best first.
---@param query? rille.OfferQuery what to look for; everything by default
---@return table offers a list that prints as a table
---@mark durable
---@async
---@error invalid an unknown field of the query
---@example
--- print(rille.offers { gpu = "A100:8", interconnect = "nvswitch", rank = "price_per_tflop" })
function rille.offers(query) end

---@class rille.OfferQuery
---@field gpu? string "any" (a GPU that Rille runs on, or this machine's CPU), "cpu", a model, or a model and a count as
---in "A100:8"; without it all there is
---@field count? number GPUs per machine
---@field spot? boolean true for machines that can be taken back
---@field max_price? number dollars per hour
---@field region? string where; anywhere by default
---@field vcpus? number at least so many
---@field memory? string at least so much, as in "32GB"
---@field regions? string|table in one of these regions
---@field providers? string|table from one of these providers
---@field interconnect? string between the GPUs "pcie", "nvlink" (also with switches), "nvswitch", "xgmi"; between
---machines "rdma" (any), "infiniband", "roce", "efa", "erdma"
---@field compliance? string|table all of these tags: "gdpr", "hipaa", "mlps3", "fedramp"
---@field network_gbps? number gigabits per second at least
---@field rank? string what comes first: "price" (the default), "price_per_tflop", "price_per_gpu_gb", or
---"tokens_per_dollar"
---@field rates? table what currencies are worth in dollars, as in { CNY = 0.14 }
---@field tokens_per_second? table what you measured on one GPU, as in { H100 = 9500 }: for rank "tokens_per_dollar"

--- Runs a function in a scope: what it rents and spawns ends with it, however it ends.
---
--- First the fibers that it spawned end, then its deferred functions run, last in first out, then its leases are
--- released.
--- An instance that the function returns moves to the scope around it.
---@param name? string shown in messages; "scope" by default
---@param fn fun(): any the body
---@return any ... what the function returns
---@mark deterministic
---@async
---@error cancelled the run or this fiber was cancelled; the scope is cleaned up first
---@example
--- rille.scope("probe", function()
---   local box = rille.rent("probe", { gpu = "cpu" })
---   print(box)
--- end) -- released here
function rille.scope(name, fn) end

--- Runs a function when the current scope ends, also by an error or a cancellation.
---@param fn fun() the clean-up
---@mark deterministic
---@error state called inside the body of a step
---@example
--- rille.defer(function() print("done") end)
function rille.defer(fn) end

--- Runs a function when the current scope ends by an error or a cancellation, and not when it ends well.
---
--- In one order with the functions of `rille.defer`: last in, first out.
---@param fn fun() the clean-up
---@mark deterministic
---@error state called inside the body of a step
---@example
--- rille.errdefer(function() print("undone") end)
function rille.errdefer(fn) end

--- Starts a function in a fiber of its own, within the current scope.
---@param name string the fiber's name, part of the identity of all that it does
---@param fn fun(): any the body
---@return Fiber handle to wait for its results
---@mark deterministic
---@error cancelled the current fiber was cancelled
---@example
--- local download = rille.spawn("download", function() return fetch() end)
--- local data = download:wait()
function rille.spawn(name, fn) end

--- Calls a function for each item of a list, each in a fiber of its own, and gives the results in the list's order.
---
--- The first error cancels the others.
---@param name string the name of the whole; fibers are named `name[1]`, `name[2]`
---@param list table the items
---@param options? rille.MapOptions how many at a time, and how items are named
---@param fn fun(item: any, index: number): any the body
---@return table results one per item
---@mark deterministic
---@async
---@example
--- local sizes = rille.map("measure", files, { limit = 4 }, function(file)
---   return rille.step("size", function() return size_of(file) end)
--- end)
function rille.map(name, list, options, fn) end

---@class rille.MapOptions
---@field limit? number how many run at a time; all by default
---@field key? string|function the field, or the function of item and index, that names an item instead of its position

--- Runs all functions of a table at the same time and gives their first results under the same keys.
---
--- The first error cancels the others.
---@param list table functions, or handles of `rille.spawn`
---@return table results one per entry
---@mark deterministic
---@async
---@example
--- local both = rille.all { a = function() return 1 end, b = function() return 2 end }
function rille.all(list) end

--- Gives the first result of the first function to end, and its key; the others are cancelled.
---@param list table functions, or handles of `rille.spawn`
---@return any result of the first
---@return any key its key in the table
---@mark durable
---@async
---@error invalid the table is empty
---@example
--- local answer, who = rille.race {
---   approved = function() return rille.signal("approve") end,
---   late = function() rille.sleep("1h") end,
--- }
function rille.race(list) end

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

--- In a call on a rented machine: the seconds until that will be taken away, or nil while nobody has said so. The
--- second value is true where the lease goes on with another machine: then save a checkpoint and call `rille.leave()`.
---
--- `rille.train` does both by itself. Elsewhere than on a rented machine there is nothing to wait for: nil.
---@return number? seconds until it will be taken away
---@return boolean? leave whether another machine goes on with the call
---@mark ephemeral
---@async
---@example
--- local left, leave = rille.preempting()
--- if left then print(("taken away in %d s"):format(left), leave) end
function rille.preempting() end

--- Ends the call here, so that it goes on from its last kept checkpoint on the lease's next machine. Does nothing where
--- no machine waits for it (`rille.preempting()` gives no `leave`).
---@mark ephemeral
---@error state code `preempted`: what ends the call; the workflow never sees it
---@example
--- local left, leave = rille.preempting()
--- if leave then rille.leave() end
function rille.leave() end

--- Gives the time of day, recorded: a resumed run sees the same instants.
---@return number seconds since 1970, with fractions
---@mark durable
---@async
---@example
--- local started = rille.now()
function rille.now() end

--- Sets what the run may spend. A rent that could pass the limit is shortened, or refused.
---@param options rille.BudgetOptions the limit
---@mark durable
---@error invalid an unknown option or an amount that cannot be
---@example
--- rille.budget { limit = 5.00, alert = 0.8 }
function rille.budget(options) end

---@class rille.BudgetOptions
---@field limit? number dollars for this run
---@field alert? number share of the limit, as in 0.8: once so much is spent or reserved, the run warns
---@field alert_url? string where the warning goes, too: https://.. is POSTed JSON, mailto:me@example.org an e-mail
---@field tag? string whose budget the run shares, see `rille budget`
---@field month? number dollars that all runs of this home may come to in this month for this run to rent

--- Writes a line to the run's log, with fields.
---@param message string what happened
---@param fields? table names with values that JSON can hold
---@mark ephemeral
---@example
--- rille.log("epoch done", { loss = 2.31 })
function rille.log(message, fields) end

--- Prints its arguments, as the global `print` does: to the run's output and its log.
---@param ... any what to print
---@mark ephemeral
function rille.print(...) end

--- Shows how far the work is. On a terminal it is one line that renews itself.
---@param state rille.Progress what is done
---@mark ephemeral
---@error invalid an unknown field
---@example
--- rille.progress { what = "train", done = 120, total = 300, unit = "steps", loss = 2.31 }
function rille.progress(state) end

---@class rille.Progress
---@field what? string the name of the work
---@field done? number how much is done
---@field total? number how much there is
---@field unit? string of done and total
---@field loss? number the latest loss
---@field rate? number units per second, or `rate_unit` per second
---@field rate_unit? string what the rate counts, when not `unit`
---@field seconds_left? number expected
---@field message? string a short remark
---@field metrics? table further numbers by name

--- Raises a structured error, with the fields that Rille's own errors have.
---@param fields rille.Error at least the message
---@mark deterministic
---@example
--- rille.error { kind = "state", message = "the model is empty", hint = "train it first" }
function rille.error(fields) end

---@class rille.Error
---@field kind? rille.ErrorKind "invalid" by default
---@field message string what failed
---@field hint? string what to do about it
---@field retryable? boolean whether a step may try again
---@field retry_after? number seconds to wait first
---@field provider? string whose service failed
---@field operation? string what was asked of it
---@field code? string its own code for the failure
---@field http_status? number its status
---@field request_id? string its name for the request
---@field resource? string what the error is about
---@field cause? table the error behind this one

--- What kind of failure an error is.
---@alias rille.ErrorKind
---| "invalid"|"config"|"auth"|"quota"|"capacity"|"network"|"timeout"|"cancelled"
---| "budget"|"state"|"io"|"integrity"|"device"|"memory"|"divergence"|"internal"

---@class Fiber
---@field name string as given to `rille.spawn`
---@field id number within the run
local Fiber = {}

--- Waits for the fiber and gives what its function returned, or raises what it raised.
---@return any ... its results
---@mark deterministic
---@async
---@error cancelled the fiber was cancelled
function Fiber:wait() end

--- Cancels the fiber: it raises `cancelled` where it waits, and its scope is cleaned up.
---@param reason? string shown in the error
---@mark deterministic
function Fiber:cancel(reason) end

--- Tells whether the fiber has ended.
---@return boolean ended true also after an error
---@mark deterministic
function Fiber:done() end

return rille
