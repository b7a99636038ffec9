-- rille.measure: measures a training loop written by the user. `rille.train` measures itself.
local native = require "rille.native"
local rille = require "rille"
local meter = require "rille.tools.meter"

local function invalid(message, hint) rille.error { kind = "invalid", message = message, hint = hint } end

---@class rille.measure.Options
---@field items? number tokens or samples of a step, if the function is called without a number
---@field workload? string the name under which the speed is stored; by default that of the script
---@field unit? string what is counted: "tokens" (the default) or "samples"
---@field model? Module whose size and type are stored with it
---@field precision? string by default the type of `rille.autocast`, else that of the model's parameters

---Measures a training loop: returns a function to call at the end of each step, with the step's tokens or samples.
---After 25 steps, and then every half minute, the median of the last 500 steps without the first five is reported to
---the run that called this machine; it is stored for `rille.offers { rank = "tokens_per_dollar", workload = NAME }` and
---`rille offers --measured`. A step costs one reading of the clock. Work whose result is not read (`loss:item()`) may
---still be running when the function is called; over twenty steps that evens out.
---@param options? rille.measure.Options what is measured
---@return fun(items?: number) step
---@mark ephemeral
---@error invalid an unknown option; neither `items` nor a number of them
---@example
--- local step = rille.measure { workload = "my-gpt", items = 16 * 1024 }
--- for i = 1, 100 do
---   -- a step of the training
---   step()
--- end
local function measure(options)
  native.check_options(options, "rille.measure", { "items", "workload", "unit", "model", "precision" })
  options = options or {}
  if options.workload ~= nil and (type(options.workload) ~= "string" or options.workload == "") then
    invalid("rille.measure: workload = " .. tostring(options.workload) .. "; a name is needed")
  end
  if options.unit ~= nil and options.unit ~= "tokens" and options.unit ~= "samples" then
    invalid("rille.measure: unit = " .. tostring(options.unit) .. "; \"tokens\" or \"samples\" is needed")
  end
  if options.model ~= nil and not meter.is_module(options.model) then
    invalid("rille.measure: model = " .. tostring(options.model) .. "; a module is needed")
  end
  local measured = meter.new(options)
  measured:begin()
  return function(items)
    items = items or options.items
    if type(items) ~= "number" or not (items > 0) then
      invalid("rille.measure: a step of " .. tostring(items) .. "; how many tokens or samples was it?",
        "rille.measure { items = batch * context }, or step(items)")
    end
    if not measured:step(items) then return end
    local report = measured.report
    rille.progress { what = "train", done = measured.seen, unit = "steps", rate = report.rate, rate_unit = report.unit,
      measured = report }
  end
end

return measure
