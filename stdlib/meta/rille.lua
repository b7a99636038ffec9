---@meta rille
--- The functions of a script: `local rille = require "rille"`.
---
--- A durable verb takes its name first, its options next and its function last. Its result is recorded under its name,
--- and a resumed run uses the recorded result instead of repeating the work.

---@class rille
---@field home string the run's own folder; it outlives the process, and `checkpoint = rille.home` keeps checkpoints
---there
---@field run_id string the run's name in `rille ps`, `rille resume` and the journal
---@field script_directory string the script's folder, for files beside it
local rille = {}

--- The device to compute on.
---@param name? string "cpu", "cuda:0", "cuda:GPU-..."; nil: RILLE_DEVICE if set, else the first CUDA device or the CPU
---@return Device device the same object at every call
---@mark ephemeral
---@error device there is no such device here; nil: this machine has an unusable GPU; the message says what is missing
---@error invalid the name is not a device's name
---@example
--- local dev = rille.device()
function rille.device(name) end

--- All devices here: CUDA devices, then the CPU. Does not open them.
---@return table devices a list
---@mark ephemeral
function rille.devices() end

--- Connects to the other ranks of a multi-process computation, on one machine or several: rank 0 listens at the
--- address, the others connect to it. You start all of them (or `cluster:each`, Slurm, a shell does), each with its own
--- rank.
---
--- Ranks on one machine communicate through shared memory, others by TCP, encrypted by TLS 1.3 with a key of the token.
--- A connection that does not prove the token is refused; an address that only this machine can reach (127.0.0.1) needs
--- none. NCCL's traffic between GPUs is not encrypted: use a private network for it.
---@param options rille.CommunicatorOptions this process's rank, and where rank 0 listens
---@return Communicator comm once all ranks are connected
---@mark ephemeral
---@async
---@error timeout ranks did not connect in time; the message names them, at every rank
---@error invalid the ranks disagree on `world`, device or transport; a rank occurs twice; no token
---@error config a rank runs another build of Rille
---@error auth another token
---@error network the address cannot be used for listening, or a rank was lost
---@error device on a GPU: there is no NCCL
---@error denied without a grant of the address (network)
---@example
--- local comm = rille.communicator { rank = args.rank, world = 2, address = "127.0.0.1:29500" }
function rille.communicator(options) end

---@class rille.CommunicatorOptions
---@field rank integer this process's rank, from 0
---@field world integer the number of ranks, at most 256
---@field address? string host and port where rank 0 listens, "10.0.0.1:29500"; a world of one needs none
---@field token? string a secret shared by all ranks
---@field device? Device|string the device of its tensors; otherwise the default device
---@field timeout? string|number for all ranks to connect, and for each call that makes no progress: "5m" by default
---@field transport? string "any" (by default), or "tcp": no shared memory

--- Reads the run's arguments (`--steps 500 --fast`), with defaults.
---
--- The type of a default determines what is accepted: a number, a boolean, a text, or a list written `a,b,c`.
---@param defaults? table names with their default values; nil returns the arguments unchanged
---@return table arguments the defaults, overridden by the command line
---@mark deterministic
---@error invalid an argument that `defaults` does not name, or a value of the wrong type
---@example
--- local args = rille.args { data = "docs", steps = 300, fast = false }
function rille.args(defaults) end

--- Rents an instance; it lives until the scope that rented it ends.
---@param name string the lease's name, its identity for the whole run
---@param options? rille.RentOptions what to look for
---@return Instance box ready for `stage`, `call` and `exec`
---@mark durable
---@async
---@nodiscard
---@error capacity nothing suitable is available at present
---@error budget the run's budget does not cover it
---@error invalid an unknown option or a bad value
---@error state the name is in use: here (`name_taken`), or by a detached lease (`name_detached`); with `adopt`, several
---leases have the name, or the machine does not fit the options (`adopt_differs`)
---@error denied without a grant of the provider; this machine also needs `process`; `adopt` needs all grants
---@example
--- local box = rille.rent("trainer", { gpu = "A100", spot = true, max_price = 2.50, ttl = "6h" })
function rille.rent(name, options) end

---@class rille.RentOptions
---@field gpu? string|table "any" (a GPU that Rille supports, or this machine's CPU), "cpu", a model as in "A100", a
---model and a count as in "A100:8", or a list of acceptable models; without it machines with and without GPUs
---@field count? number GPUs per machine
---@field gpu_memory? string of each GPU at least, as in "40GB"
---@field gpu_vendor? string "nvidia", "amd" or "intel"
---@field disk_kind? string of the disk that comes with the machine: "nvme" (local), or "network"
---@field spot? boolean true accepts machines that the provider may preempt
---@field max_price? number dollars per hour
---@field region? string where; anywhere by default
---@field vcpus? number processors, at least
---@field memory? string at least, as in "32GB"
---@field regions? string|table in one of these regions
---@field providers? string|table from one of these providers
---@field interconnect? string between the GPUs "pcie", "nvlink" (also with switches), "nvswitch", "xgmi"; between
---machines "rdma" (any), "infiniband", "roce", "efa", "erdma"
---@field compliance? string|table all of these tags: "gdpr", "hipaa", "mlps3", "fedramp"
---@field network_gbps? number gigabits per second at least
---@field rank? string the order: "price" (the default), "price_per_tflop", "price_per_gpu_gb", or
---"tokens_per_dollar"
---@field rates? table the value of currencies in dollars, as in { CNY = 0.14 }
---@field tokens_per_second? table your measurement on one GPU, as in { H100 = 9500 }: for rank "tokens_per_dollar"
---@field workload? string for that rank: measured by `rille.train` under this name; `tokens_per_second` overrides it
---@field estimated? boolean true estimates GPUs without a measurement, in proportion to their TFLOPs
---@field provider? string only this provider, as in "local"
---@field ttl? string the longest that it may live; a budget can shorten it
---@field min_ttl? string refuse a shorter life than this
---@field orphan_after? string how long the instance waits for a lost runner before it ends itself
---@field idle_after? string ends it after so long unused: no call, no file, no load above `idle_below`
---@field idle_below? number the load below which a machine counts as unused, from 0 to 1, by default 0.05
---@field disk? string a disk to order with the machine, as in "200GB"
---@field price? number dollars per hour, if the provider has no price, or of the `reservation`
---@field on_loss? string "replace" continues with another machine when this one is lost, "fail" raises an error
---@field cluster? string a name: machines of the run with the same name reach each other at all ports, if Rille creates
---the network rules; `rille.cluster` sets it for its members
---@field volumes? table volumes by folder, as in { data = vol }: each is at that path in the instance's work folder.
---The rent looks only where they are
---@field adopt? boolean|string true uses the machine of a live or detached lease of that name, of whichever run, and
---rents only if there is none; a lease's id says which. Such a machine is only used: its own run, or the end of its
---detached time, ends it
---@field gpu_check? boolean false accepts a machine that lacks the GPUs it was rented with, with a warning
---@field cuda? boolean false rents a GPU that this build of Rille cannot use, for programs of your own (`box:exec`)
---@field unguarded? boolean true accepts machines that do not end themselves when the runner is lost for ever
---@field hold_ttl? string how long it is kept for a run that was suspended, killed, or has diverged: "12h"
---@field reservation? string reserved capacity, by its name or id there: on demand from `provider` "aws",
---"azure", "gcp", "alibaba", and "slurm"
---@field qos? string the job's quality of service, its priority among others: `provider` "slurm"
---@field image? string the machine's image, in the notation of its `provider`, which must be named
---@field priority_class? string the pod's priority among others: `provider` "kubernetes"

--- As `rille.rent`, but returns nil and the error when nothing suitable is available.
---@param name string the lease's name
---@param options? rille.RentOptions what to look for
---@return Instance? box nil when there is no capacity
---@return table? err the `capacity` error
---@mark durable
---@async
---@nodiscard
---@error budget the run's budget does not cover it
---@error denied without a grant of the provider; this machine also needs `process`
---@example
--- local box, err = rille.try_rent("big", { gpu = "H100:8" })
--- if not box then print("no capacity: " .. err.message) end
function rille.try_rent(name, options) end

--- Returns the volume of that name, a disk that outlives machines and runs, or makes it.
---
--- The name is the volume's identity in the whole home. It costs until it is deleted: by `vol:delete()`, by `rille
--- volume rm NAME`, or with `keep = false` by the end of its scope; no other scope gets that one.
---@param name string its name
---@param options? rille.VolumeOptions what to make; of a volume that exists, what it must be
---@return Volume vol for the option `volumes` of `rille.rent`
---@mark durable
---@async
---@nodiscard
---@error invalid an unknown option or a bad value; a provider that has no volumes
---@error state it differs (`volume_differs`), is another scope's (`name_taken`), is made or deleted now (`volume_busy`)
---@error budget the budget has no room for a month of it
---@error capacity the provider has no such volume there
---@error denied without a grant of the provider; this machine also needs `process`
---@example
--- local vol = rille.volume("corpus", { size = "500GB", provider = "aws", region = "us-east-1" })
--- local box = rille.rent("trainer", { gpu = "A100", volumes = { data = vol } })
function rille.volume(name, options) end

---@class rille.VolumeOptions
---@field size? string as in "500GB"; a volume that exists does not need it
---@field kind? string the provider's kind of disk; its first one by default
---@field provider? string whose disk; the home's only provider that has volumes by default
---@field region? string where; machines can use it only there
---@field keep? boolean false deletes it at the end of the scope that made it; true by default

--- Lists what can be rented, best first.
---
--- With a `workload` each offer has `tokens_from` beside `tokens_per_dollar`: "given", "measured", "estimated", or "not
--- measured"; the last come last.
---@param query? rille.OfferQuery what to look for; everything by default. `timeout`, as in "20s", limits each provider;
---without it the limit is 30 seconds, or about 10 once another provider has offers
---@return table offers a list that prints as a table; after the offers a row with `error` for each provider or region
---that failed, and one with `note` where types were left out
---@mark durable
---@async
---@error invalid an unknown field of the query, or a workload that was never measured
---@error denied without a grant of the provider
---@example
--- print(rille.offers { gpu = "A100:8", interconnect = "nvswitch", rank = "price_per_tflop" })
function rille.offers(query) end

--- Lists past prices of spot machines by type, for providers that record them.
---
--- Each row has `provider`, `type`, `currency`, `zones`, `points`, `from` (the time of the first known price), the
--- prices per hour `lowest`, `median`, `highest` and `now`, and `samples`: up to 24 evenly spaced prices of the
--- cheapest zone until now. A provider that failed is a row with `error`.
---@param query? rille.PriceHistoryQuery which machines, and how far back
---@return table history a list that prints as a table
---@mark durable
---@async
---@error invalid an unknown field of the query, or an unknown provider
---@error denied without a grant of the provider
---@example
--- print(rille.price_history { gpu = "A100", since = "7d" })
function rille.price_history(query) end

--- Lists how much the accounts may rent at a time: the quotas that matter for GPUs, under the providers' own names.
---
--- Each row has `provider`, `region`, `name`, `limit`, and `used` if known. A provider that failed is a row with
--- `error`; one that reports no quotas is left out unless it is named.
---@param query? table `provider` or `providers`, and `region`; by default all configured providers
---@return table quotas a list that prints as a table
---@mark durable
---@async
---@error invalid an unknown field of the query, or an unknown provider
---@error denied without a grant of the provider
---@example
--- for _, quota in ipairs(rille.quotas { provider = "aws" }) do print(quota.region, quota.name, quota.limit) end
function rille.quotas(query) end

---@class rille.PriceHistoryQuery
---@field gpu? string|table "any", "cpu", a model, a model and a count as in "A100:8", or a list of models
---@field count? number GPUs per machine
---@field vcpus? number processors, at least
---@field memory? string at least, as in "32GB"
---@field region? string only there
---@field provider? string only this provider
---@field providers? table only these
---@field since? string how far back, by default "7d"

---@class rille.OfferQuery
---@field gpu? string|table "any" (a GPU that Rille supports, or this machine's CPU), "cpu", a model, a model and count
---as in "A100:8", or a list of models; without it everything
---@field count? number GPUs per machine
---@field gpu_memory? string of each GPU at least, as in "40GB"
---@field gpu_vendor? string "nvidia", "amd" or "intel"
---@field disk_kind? string of the disk that comes with the machine: "nvme" (local), or "network"
---@field spot? boolean true for machines that the provider may preempt
---@field max_price? number dollars per hour
---@field region? string where; anywhere by default
---@field vcpus? number processors, at least
---@field memory? string at least, as in "32GB"
---@field regions? string|table in one of these regions
---@field providers? string|table from one of these providers
---@field interconnect? string between the GPUs "pcie", "nvlink" (also with switches), "nvswitch", "xgmi"; between
---machines "rdma" (any), "infiniband", "roce", "efa", "erdma"
---@field compliance? string|table all of these tags: "gdpr", "hipaa", "mlps3", "fedramp"
---@field network_gbps? number gigabits per second at least
---@field rank? string the order: "price" (the default), "price_per_tflop", "price_per_gpu_gb", or
---"tokens_per_dollar"
---@field rates? table the value of currencies in dollars, as in { CNY = 0.14 }
---@field tokens_per_second? table your measurement on one GPU, as in { H100 = 9500 }: for rank "tokens_per_dollar"
---@field workload? string for that rank: measured by `rille.train` under this name; `tokens_per_second` overrides it
---@field estimated? boolean true estimates GPUs without a measurement, in proportion to their TFLOPs

--- In a call on a rented machine: the seconds until the machine will be preempted, or nil without a notice. The second
--- value is true if the lease continues with another machine: then save a checkpoint and call `rille.leave()`.
---
--- `rille.train` does both itself. Outside of rented machines it returns nil.
---@return number? seconds until the preemption
---@return boolean? leave whether another machine continues the call
---@mark ephemeral
---@async
---@example
--- local left, leave = rille.preempting()
--- if left then print(("preempted in %d s"):format(left), leave) end
function rille.preempting() end

--- Ends the call here, so that it continues from its last kept checkpoint on the lease's next machine. No effect if no
--- machine waits for it (the second value of `rille.preempting()` is not true).
---@mark ephemeral
---@error state code `preempted`: ends the call; the workflow never sees it
---@example
--- local left, leave = rille.preempting()
--- if leave then rille.leave() end
function rille.leave() end

--- Limits the run's spending. A rent that could exceed the limit is shortened or refused.
---@param options rille.BudgetOptions the limit
---@mark durable
---@error invalid an unknown option or an impossible amount
---@error denied without a grant of the address (network), or of the variable (env), of `alert_url`
---@example
--- rille.budget { limit = 5.00, alert = 0.8 }
function rille.budget(options) end

---@class rille.BudgetOptions
---@field limit? number dollars for this run
---@field alert? number share of the limit, as in 0.8: once so much is spent or reserved, the run warns
---@field alert_url? string also sends the warning: https://.. gets a POST of JSON, mailto:me@example.org an e-mail;
---env:NAME uses the value of that variable, which is stored nowhere
---@field tag? string the tag whose budget the run shares, see `rille budget`
---@field month? number dollars: this run rents only while this month's total of all runs of this home stays below

return rille
