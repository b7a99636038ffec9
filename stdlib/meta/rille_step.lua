---@meta rille
--- Steps: work that is done once, and transactional steps. Part of the page of `rille.lua`.

---@class rille
local rille = {}

--- Runs a function once, records its result, and returns the recorded result on every resume.
---
--- The body is the place for effects: files, programs, services. It gets the number of the attempt, counted from 1, and
--- its `Step`. A retryable error is retried after a growing, seeded pause. The body must return its results, not assign
--- them: a change of an outer local or of a captured table is refused.
---@param name string the step's name; with the fiber and the number of its occurrence it is the step's identity
---@param options? rille.StepOptions how to retry, and what the result depends on
---@param fn fun(attempt: number, ctx: Step): any returns one value that JSON can hold
---@return any value the recorded value
---@mark durable
---@async
---@error state the body changed a variable that is declared outside of it, or called a durable verb; or, with the code
---`step_uncertain`, a step of effect "once" was interrupted and its effect is unknown; or `step_poisoned`
---@error timeout the code is `step_timeout`: an attempt, or all of them, took too long
---@error divergence a resumed script asks for another step than the journal has at this place
---@error invalid the body returned something that cannot be recorded
---@error denied without grants to read and write the file `db`
---@example
--- local id = rille.step("register", { retry = 3 }, function(attempt)
---   return register_model("demo")
--- end)
function rille.step(name, options, fn) end

---@class rille.StepOptions
---@field retry? number|rille.Retry attempts in all, or the whole policy; by default 5, for retryable errors only
---@field args? any what the result depends on; a resume with other values is a divergence
---@field effect? string "idempotent" (the default: an interrupted body runs again), "pure" (the same, and nothing
---is journaled before it ends), "once" (it does not run again) or "tx" (its writes to `ctx.db` happen exactly once)
---@field timeout? string the longest that one attempt may take; the body is cancelled with a `timeout`, and tried again
---@field total_timeout? string the longest from the first attempt on, including crashes
---@field heartbeat_timeout? string the longest between two heartbeats of one attempt
---@field crashes_max? number how many crashes of the process inside the body are retried, by default 5 if
---`retry` is given; one more raises `state` with the code `step_poisoned`
---@field probe? fun(ctx: Step): string, any for effect "once": called on resume to find out whether an interrupted body
---took effect; returns "done" and the result, or "absent"
---@field db? string for effect "tx": the SQLite file, relative to the script's folder. In a run with limits, or without
---all grants, one in WAL mode must be open nowhere else
---@field sim? table for `rille simulate` and `rille plan`: `duration` and `result`, which replace the body there

---@class Step
---@field attempt number the attempt, from 1
---@field token string a UUID, the same in every attempt and after every resume: an idempotency key for services
---@field last any the last heartbeat of an earlier attempt, or nil
---@field db Database of a step with effect "tx": its transaction
local Step = {}

--- Stores a value for the next attempt of this step, which reads it as `ctx.last`, also after a crash.
---
--- At most one value per second is written, the newest.
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

--- Runs statements in the transaction of a step with effect "tx", and returns the number of changed rows.
---@param sql string one statement, or several without values
---@param ... any a value for each `?`, or one table for `:names`
---@return number changed rows, including those changed by triggers
---@mark step-only
---@error invalid the statement is wrong, breaks a constraint, would end the transaction, or is a pragma that changes
--- settings; under limits also if it is too large
---@error state the transaction is over
---@example
--- rille.step("add", { effect = "tx", db = "my.db" }, function(attempt, ctx)
---   ctx.db:exec("UPDATE counter SET n = n + ?", 1)
--- end)
function Database:exec(sql, ...) end

--- Runs a statement in the transaction of a step with effect "tx", and returns its rows.
---@param sql string the statement
---@param ... any a value for each `?`, or one table for `:names`
---@return table rows a list of tables, keyed by column name; a NULL is nil
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
---@field only_retryable? boolean true does not retry errors that are not marked retryable
---@field max_elapsed? string no attempt begins later than this after the first
---@field on_exhausted? string "error" (the default), or "pause": the run is suspended after the last attempt, and
---`rille resume` grants as many again

return rille
