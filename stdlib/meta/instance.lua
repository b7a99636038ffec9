---@meta instance
--- An instance: the machine behind a lease, from `rille.rent`. Its fields are read when they are accessed.

---@class Instance
---@field name string the lease's name
---@field id string the lease's id in the journal
---@field provider string the provider's name
---@field state string "live", or its present state
---@field machine string the provider's name for the machine
---@field region string its region
---@field gpu string the model; "" without one
---@field gpu_count number GPUs
---@field generation number 1, plus one for every replacement
---@field vcpus number processors
---@field memory number bytes
---@field price? number dollars per hour; nil if it is not known in dollars
---@field spent number dollars until now, without amounts in other currencies
---@field costs table all costs until now, by currency: `{ USD = 3.2, CNY = 14.1 }`
---@field expires number the end of its life, seconds since 1970
---@field spot boolean whether the provider may preempt it
local Instance = {}

--- Brings a file or a folder to the instance, with checksums; an interrupted transfer resumes.
---
--- The instance fetches by itself what is in a store or on the web, by addresses that are valid for an hour; the keys
--- stay here. What it cannot reach passes through this machine, and a warning says so. Members of a cluster that stage
--- the same object get it once, and pass its parts on to each other; with `sha256`, all machines of a provider's region
--- do.
---@param from string a local path, an object, prefix or pattern in a store (`s3://bucket/data/`), or an http(s) address
---@param to? string its name on the instance, by default the last part of `from`; a folder when it ends in "/"
---@param options? Instance.StageOptions checks, and what is done with the data
---@return table facts `files`, `bytes`, and of a single object `version`
---@mark durable
---@async
---@error io the source cannot be read
---@error invalid a key that cannot be a file below a folder, or options that do not fit the source
---@error state there is no such object or bucket (http_status 404)
---@error auth the keys of the store are missing, or not allowed to do this
---@error integrity another SHA-256 than expected, it changed meanwhile, two machines differ, or a damaged archive
---@error quota the instance's disk has no room, or there are more than a million objects
---@error network the address or the instance cannot be reached
---@error denied without a grant: `read`, `network`, of a store's keys `providers`; on this machine `process`
---@example
--- box:stage("corpus.txt", "corpus")
--- box:stage("s3://my-bucket/data/", "data/", { mirror = true })
function Instance:stage(from, to, options) end

--- Copies a file or a folder from the instance.
---@param from string its name on the instance
---@param to? string where to put it, by default here under the same name; a folder when it ends in "/"
---@param options? Instance.TransferOptions checks
---@return table facts about the fetched data
---@mark durable
---@async
---@error io the target cannot be written, or the instance has no file of that name
---@error network the instance cannot be reached
---@error denied without a grant to write the target; on this machine without `process`
---@example
--- box:get("checkpoints/latest", "out/")
function Instance:get(from, to, options) end

---@class Instance.StageOptions
---@field sha256? string refuse a file with another SHA-256
---@field mirror? boolean remove files of the target folder that the source folder does not have
---@field unpack? boolean unpack the archive (tar, also compressed; zip) into the target folder
---@field bandwidth? string most bytes per second that the instance fetches, such as "100MB/s", or a number
---@field sim? table for `rille simulate`: `size`, such as "20GB", of data that only the network knows

---@class Instance.TransferOptions
---@field sha256? string refuse data with another SHA-256
---@field sim? table for `rille simulate`: `size`, such as "20GB", of data that only the network knows

--- Runs a Lua function on the instance and returns its result.
---
--- The function is sent with the data that it captures; `rille` and helper functions are available too. Captured values
--- that cannot be sent are refused before anything runs. A resumed run joins a call that is still running.
--- A result has at most 64 MB: larger ones are written to a file by the function, and fetched with `box:get`.
---@param name string the call's name, its identity on this instance
---@param options? Instance.CallOptions its arguments and limits
---@param fn fun(args: any): any the function, or the name of a module of the script
---@return any value the function's result
---@mark durable
---@async
---@error invalid the function captures something that cannot be sent, or its result is too large
---@error timeout the call took longer than its limit
---@error integrity the bundle that would be installed there is damaged, or no trusted release key signed it
---@error network the instance cannot be reached
---@error denied without a grant of a secret's variable (env); on this machine without `process`; with checkpoints in a
---store without `network` for its host and `providers` for its cloud
---@example
--- local sum = box:call("add", { args = { 2, 3 } }, function(args) return args[1] + args[2] end)
function Instance:call(name, options, fn) end

---@class Instance.CallOptions
---@field args? any the function's argument
---@field checkpoint? string where the call's checkpoints are kept: `rille.home` copies them to this side; an address
---such as "s3://bucket/run/" keeps them in that store, to which the machine sends them without keys
---@field container? string the image of a container to run it in, with the instance's GPUs and its work folder
---@field secrets? string[] names of environment variables to pass on: their values are stored nowhere
---@field timeout? string the longest that it may take
---@field setup? boolean repeat it on each further machine of the lease, before anything else runs there
---@field sim? table for `rille simulate`: `duration`, `result`, `checkpoint_every`

--- Runs a program on the instance and returns its exit code and output.
---
--- What it prints is shown and logged while it runs. The result has the last 60 KB of it, standard output and error as
--- they came. A line `rille.metric loss=2.31 step=120` of it is a metric as well.
---@param name string the call's name, its identity on this instance
---@param options Instance.ExecOptions what to run
---@return Instance.ExecResult result
---@mark durable
---@async
---@error state the program failed, unless `check = false`
---@error io there is no such folder (`cwd`), or no such program
---@error invalid `stdin` is too long
---@error timeout the program took longer than its limit
---@error integrity the bundle that would be installed there is damaged, or no trusted release key signed it
---@error config the container's image could not be started, or the instance has no docker and no podman
---@error denied without a grant of a secret's variable (env); on this machine without `process`
---@example
--- local version = box:exec("version", { argv = { "python3", "--version" } }).output
function Instance:exec(name, options) end

---@class Instance.ExecResult
---@field code number the exit code
---@field signal number the signal that ended it, 0 without one
---@field output string what it printed, at most the last 60 KB
---@field output_cut? boolean true if `output` lacks the beginning, which `rille logs` has

---@class Instance.ExecOptions
---@field argv table the program and its arguments, one word each
---@field env? table variables added to its environment
---@field cwd? string the folder to run it in, relative to the instance's work folder
---@field stdin? string its standard input, at most 1 MiB; without it an empty one
---@field secrets? string[] names of environment variables to pass on: their values are stored nowhere
---@field container? string the image of a container to run it in, with the instance's GPUs and its work folder
---@field timeout? string the longest that it may take
---@field check? boolean false returns a failing exit code instead of raising
---@field setup? boolean repeat it on each further machine of the lease, before anything else runs there
---@field sim? table for `rille simulate`: `duration`, `result`, `checkpoint_every`

--- Releases the instance now rather than at the end of its scope.
---@mark durable
---@async
---@error network the provider cannot be reached; the release is retried later
---@example
--- box:release()
function Instance:release() end

--- Ends the machine and gives the lease another with the same setup. Active calls continue there.
---@param options? rille.RentOptions changes to the options of `rille.rent`; not `ttl`
---@mark durable
---@async
---@error capacity never raised: it waits until a machine is available, or the lease's `ttl` has passed
---@error budget another machine would exceed a budget
---@error state the lease is released, or its `ttl` has passed
---@error denied without a grant of the provider
---@example
--- box:replace { region = "eu-west-1" }
function Instance:replace(options) end

--- Changes the machine to another type: it stops, is changed, and starts again.
---
--- Its disk stays with all its data; running programs end, and its address may change. The new type is searched at the
--- machine's location, from its provider. A machine that already fits stays unchanged. If it cannot be changed, it
--- continues unchanged, and the error says why. Later replacements of the machine use the new type.
---@param options Instance.ResizeOptions the wanted type
---@mark durable
---@async
---@error invalid the provider does not support it, or not with a spot machine
---@error capacity there is no such type at the machine's location, or none is left
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
---@field interconnect? string as for `rille.rent`
---@field gpu_memory? string of each GPU at least, as in "40GB"
---@field gpu_vendor? string as for `rille.rent`
---@field disk_kind? string as for `rille.rent`
---@field network_gbps? number gigabits per second, at least
---@field max_price? number dollars per hour, at most; by default that of the rent
---@field price? number dollars per hour, if the provider has no price

--- Whether the provider, or something on the machine, has announced a preemption.
---
--- Calls are notified automatically; with `on_loss = "replace"` the lease also moves automatically.
---@return number? deadline when, in seconds since 1970; nil without a notice
---@mark durable
---@async
---@error state the lease is released
---@example
--- if box:preempting() then print("this machine will be taken away") end
function Instance:preempting() end

--- How busy the machine is, as a mean over the last minute; recorded.
---
--- The agent measures the whole machine, including other programs. A new machine may have no value yet.
---@return Instance.Usage usage without unknown values
---@mark durable
---@async
---@error network the instance cannot be reached
---@error state the lease is released
---@example
--- local usage = box:telemetry()
--- print(usage.utilization)
function Instance:telemetry() end

---@class Instance.Usage
---@field utilization? number from 0 to 1: of its GPUs, or of its processors if no GPU reports it
---@field gpu_percent? number the last reading of its GPUs, their mean
---@field cpu_percent? number the last reading of its processors
---@field memory_used_bytes? number in use
---@field memory_total_bytes? number in all

--- Lets the lease outlive its scope and its run. It ends after `ttl`, or with `rille release`.
---@param ttl string how much longer it lives, at most the ttl that it was rented with
---@mark durable
---@async
---@error invalid longer than the ttl that it was rented with
---@error state it is released
---@example
--- box:detach("8h")
function Instance:detach(ttl) end

--- Describes the lease as a plain table.
---@return table facts such as `provider`, `state`, `price_per_hour`
---@mark durable
function Instance:describe() end

return Instance
