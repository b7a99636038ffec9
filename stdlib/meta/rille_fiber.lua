---@meta rille
--- Scopes and fibers: concurrent work, and its clean-up. Part of the page of `rille.lua`.

---@class rille
local rille = {}

--- Runs a function in a scope: everything that it rents and spawns ends with the scope, even on an error.
---
--- First the scope's fibers end, then its deferred functions run, last in first out, then its leases are
--- released.
--- An instance that the function returns moves to the enclosing scope.
---@param name? string shown in messages; "scope" by default
---@param fn fun(): any the body
---@return any ... the function's results
---@mark deterministic
---@async
---@error cancelled the run or this fiber was cancelled; the scope is cleaned up first
---@example
--- rille.scope("probe", function()
---   local box = rille.rent("probe", { gpu = "cpu" })
---   print(box)
--- end) -- released here
function rille.scope(name, fn) end

--- Runs a function when the current scope ends, also after an error or a cancellation.
---@param fn fun() the clean-up
---@mark deterministic
---@error state called inside the body of a step
---@example
--- rille.defer(function() print("done") end)
function rille.defer(fn) end

--- Runs a function when the current scope ends by an error or a cancellation, but not on success.
---
--- Runs in one order with the functions of `rille.defer`: last in, first out.
---@param fn fun() the clean-up
---@mark deterministic
---@error state called inside the body of a step
---@example
--- rille.errdefer(function() print("undone") end)
function rille.errdefer(fn) end

--- Starts a function in a fiber of its own, within the current scope.
---@param name string the fiber's name, part of the identity of everything it does
---@param fn fun(): any the body
---@return Fiber handle to wait for its results
---@mark deterministic
---@error cancelled the current fiber was cancelled
---@example
--- local download = rille.spawn("download", function() return fetch() end)
--- local data = download:wait()
function rille.spawn(name, fn) end

--- Calls a function for each item of a list, each in a fiber of its own, and returns the results in the list's order.
---
--- The first error cancels the others.
---@param name string the name of the map; fibers are named `name[1]`, `name[2]`
---@param list table the items
---@param options? rille.MapOptions items at a time, and the items' names
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

--- Runs all functions of a table concurrently and returns their first results under the same keys.
---
--- The first error cancels the others.
---@param list table functions, or handles of `rille.spawn`
---@return table results one per entry
---@mark deterministic
---@async
---@example
--- local both = rille.all { a = function() return 1 end, b = function() return 2 end }
function rille.all(list) end

--- Returns the first result of the first function to end, and its key; the others are cancelled.
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

---@class Fiber
---@field name string as given to `rille.spawn`
---@field id number within the run
local Fiber = {}

--- Waits for the fiber and returns its function's results, or raises its error.
---@return any ... its results
---@mark deterministic
---@async
---@error cancelled the fiber was cancelled
function Fiber:wait() end

--- Cancels the fiber: it raises `cancelled` at its next wait, and its scope is cleaned up.
---@param reason? string shown in the error
---@mark deterministic
function Fiber:cancel(reason) end

--- Whether the fiber has ended.
---@return boolean ended true also after an error
---@mark deterministic
function Fiber:done() end

return rille
