---@meta rille
--- Output of a run: its log, prints, progress and errors. Part of the page of `rille.lua`.

---@class rille
local rille = {}

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

--- Shows the progress of the work. On a terminal it is one line that is updated in place.
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
---@field seconds_left? number expected time left
---@field message? string a short remark
---@field metrics? table further numbers by name
---@field measured? table the training speed, as reported by `rille.train` and `rille.measure`

--- Keeps a number under a name, in a file beside the run's record: `rille report` draws it, `rille metrics` exports it.
--- In a call on a machine it is kept there too, while no runner is connected. Nothing waits for a disk. A program of
--- `box:exec` prints lines `rille.metric NAME=NUMBER step=NUMBER` instead.
---
--- Of several numbers with one name and step, the last counts: a training that goes on from a checkpoint repeats steps.
--- A resumed run does not write them again while it follows its record. A script, and each call on each machine, may
--- write 64 MB of them, some 700,000; later ones are dropped.
---@param name string 1 to 128 bytes
---@param value number any number, also NaN
---@param options? rille.MetricOptions where it stands on its curve
---@mark ephemeral
---@error invalid the value is not a number, or the name is empty, too long or has control characters
---@error quota the limit of disk of an embedding program
---@example
--- rille.metric("accuracy", 0.91, { step = 120 })
function rille.metric(name, value, options) end

---@class rille.MetricOptions
---@field step? number where it stands on the curve; without it, the time

--- Raises a structured error, with the same fields as Rille's own errors.
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
---@field provider? string the provider whose service failed
---@field operation? string the operation that failed
---@field code? string the service's own code for the failure
---@field http_status? number its status
---@field request_id? string its id of the request
---@field resource? string the object that the error concerns
---@field cause? table the underlying error

--- What kind of failure an error is.
---@alias rille.ErrorKind
---| "invalid"|"config"|"auth"|"quota"|"capacity"|"network"|"timeout"|"cancelled"
---| "budget"|"state"|"io"|"integrity"|"device"|"memory"|"divergence"|"internal"|"denied"

return rille
