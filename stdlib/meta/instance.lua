---@meta instance
--- An instance: the machine behind a lease, as `rille.rent` gives it. Its fields are read when they are asked for.

---@class Instance
---@field name string the lease's name
---@field id string the lease's id in the journal
---@field provider string who rents it out
---@field state string "live", or what has become of it
---@field machine string the provider's name for the machine
---@field region string where it stands
---@field gpu string the model; "" without one
---@field gpu_count number GPUs
---@field generation number 1, and one more for every replacement
---@field vcpus number processors
---@field memory number bytes
---@field price? number dollars per hour; nil when it is not known in dollars
---@field spent number dollars until now; what is counted in another currency is not in it
---@field costs table all that it has cost until now, by currency: `{ USD = 3.2, CNY = 14.1 }`
---@field expires number the end of its life, seconds since 1970
---@field spot boolean whether it can be taken back
local Instance = {}

--- Puts a file or a folder onto the instance, checked and resumed.
---@param from string a path on this side, or an http(s) address
---@param to string its name on the instance
---@param options? Instance.TransferOptions checks
---@return table facts what was put there
---@mark durable
---@async
---@error io the source cannot be read
---@error integrity its SHA-256 is not the one that was asked for
---@error network the address or the instance cannot be reached
---@example
--- box:stage("corpus.txt", "corpus")
function Instance:stage(from, to, options) end

--- Fetches a file or a folder from the instance.
---@param from string its name on the instance
---@param to string where to put it; a folder when it ends in "/"
---@param options? Instance.TransferOptions checks
---@return table facts what was fetched
---@mark durable
---@async
---@error io the target cannot be written, or nothing of that name is on the instance
---@error network the instance cannot be reached
---@example
--- box:get("checkpoints/latest", "out/")
function Instance:get(from, to, options) end

---@class Instance.TransferOptions
---@field sha256? string refuse other bytes than these
---@field sim? table for `rille simulate`: `size`, such as "20GB", of what only the network knows

--- Runs a Lua function on the instance and gives its result.
---
--- The function travels with the data that it captures; `rille` and helper functions travel too. What cannot travel is
--- refused before anything runs. A run that is resumed joins the call that still works.
---@param name string the call's name, its identity on this instance
---@param options? Instance.CallOptions its arguments and limits
---@param fn fun(args: any): any the function, or the name of a module of the script
---@return any value what the function returned
---@mark durable
---@async
---@error invalid the function captures something that cannot travel
---@error timeout the call took longer than its limit
---@error network the instance cannot be reached
---@example
--- local sum = box:call("add", { args = { 2, 3 } }, function(args) return args[1] + args[2] end)
function Instance:call(name, options, fn) end

---@class Instance.CallOptions
---@field args? any the function's argument
---@field checkpoint? string where checkpoints of the call are kept; `rille.home` brings them to this side
---@field container? string the image of a container to run it in, with the instance's GPUs and its work folder
---@field secrets? string[] names of environment variables that it gets, too: their values are written nowhere
---@field timeout? string the longest that it may take
---@field setup? boolean also on each further machine of the lease, before anything else runs there
---@field sim? table for `rille simulate`: `duration`, `result`, `checkpoint_every`

--- Runs a program on the instance and gives its exit code and output.
---@param name string the call's name, its identity on this instance
---@param options Instance.ExecOptions what to run
---@return table result with the fields `code` and `signal`
---@mark durable
---@async
---@error state the program failed, unless `check = false`
---@error timeout the program took longer than its limit
---@error config the container's image could not be started, or the instance has no docker and no podman
---@example
--- box:exec("version", { argv = { "python3", "--version" } })
function Instance:exec(name, options) end

---@class Instance.ExecOptions
---@field argv table the program and its arguments, one word each
---@field env? table variables added to its environment
---@field secrets? string[] names of environment variables that it gets, too: their values are written nowhere
---@field container? string the image of a container to run it in, with the instance's GPUs and its work folder
---@field timeout? string the longest that it may take
---@field check? boolean false gives a failing exit code back instead of raising
---@field setup? boolean also on each further machine of the lease, before anything else runs there
---@field sim? table for `rille simulate`: `duration`, `result`, `checkpoint_every`

--- Releases the instance now rather than at the end of its scope.
---@mark durable
---@async
---@error network the provider cannot be reached; the release goes on being tried
---@example
--- box:release()
function Instance:release() end

--- Ends the machine and gives the lease another, set up as this one was. Calls under way go on there.
---@param options? rille.RentOptions what differs from the options of `rille.rent`; not `ttl`
---@mark durable
---@async
---@error capacity no longer: it waits until there is something to rent, or the lease's `ttl` is over
---@error budget another machine would exceed a budget
---@error state the lease is released, or its `ttl` has passed
---@example
--- box:replace { region = "eu-west-1" }
function Instance:replace(options) end

--- Makes the machine one of another type: it stops, is changed, and starts again.
---
--- Its disk stays, with all that was put there; what runs on it ends, and its address may be another. The new type is
--- looked for where the machine stands, at its provider. A machine that fits already stays as it is. One that cannot be
--- changed goes on as it was, and the error says why. From then on a machine that takes its place is like the new one.
---@param options Instance.ResizeOptions what the machine shall be
---@mark durable
---@async
---@error invalid the provider cannot do that, or not with a spot machine
---@error capacity there is no such type where the machine stands, or none is left
---@error budget it would cost more than a budget leaves until the lease's end
---@error state something runs on it; or the lease is released
---@example
--- box:resize { gpu = "A100:8", max_price = 40 }
function Instance:resize(options) end

---@class Instance.ResizeOptions
---@field gpu? string a model, or a model and a count as in "A100:8"; "cpu" for none
---@field count? number GPUs
---@field type? string the provider's own name, as in "p4d.24xlarge"; with `gpu` beside it, both must hold
---@field vcpus? number processors, at least
---@field memory? string at least, as in "64GB"
---@field interconnect? string as of `rille.rent`
---@field gpu_memory? string of each GPU at least, as in "40GB"
---@field gpu_vendor? string as of `rille.rent`
---@field disk_kind? string as of `rille.rent`
---@field network_gbps? number gigabits per second, at least
---@field max_price? number dollars per hour, at most; by default that of the rent
---@field price? number dollars per hour, where the provider does not say so

--- Tells whether the provider, or something on the machine, has said that it will be taken away.
---
--- Calls are told by themselves; with `on_loss = "replace"` the lease moves by itself, too.
---@return number? deadline when, in seconds since 1970; nil while nobody has said so
---@mark durable
---@async
---@error state the lease is released
---@example
--- if box:preempting() then print("this machine will be taken away") end
function Instance:preempting() end

--- Tells how busy the machine is, as a mean over the last minute; recorded.
---
--- It is what its agent sees: the whole machine, whoever works there. A machine that has just come up may not tell yet.
---@return Instance.Usage usage what is known; the rest is left out
---@mark durable
---@async
---@error network the instance cannot be reached
---@error state the lease is released
---@example
--- local usage = box:telemetry()
--- print(usage.utilization)
function Instance:telemetry() end

---@class Instance.Usage
---@field utilization? number from 0 to 1: of its GPUs, or of its processors where no GPU tells
---@field gpu_percent? number the last reading of its GPUs, the mean of them
---@field cpu_percent? number the last reading of its processors
---@field memory_used_bytes? number in use
---@field memory_total_bytes? number in all

--- Lets the lease outlive its scope and its run. It ends after `ttl`, or with `rille release`.
---@param ttl string how much longer it lives, at most as long as it was rented for
---@mark durable
---@async
---@error invalid it was not rented for that long
---@error state it is released
---@example
--- box:detach("8h")
function Instance:detach(ttl) end

--- Gives what is known of the lease as a plain table.
---@return table facts such as `provider`, `state`, `price_per_hour`
---@mark durable
function Instance:describe() end

return Instance
