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
---@error device there is no such device here; nil: this machine has a GPU that cannot be used, and what is missing
---@error invalid that is no device's name
---@example
--- local dev = rille.device()
function rille.device(name) end

--- All devices here: CUDA devices, then the CPU. None is opened by this.
---@return table devices a list
---@mark ephemeral
function rille.devices() end

--- Meets the other ranks of a computation by several processes, on one machine or several: rank 0 listens at the
--- address, the others come to it. All are started by you (or by `cluster:each`, Slurm, a shell), each with its own
--- rank.
---
--- Ranks of one machine talk through shared memory, others by TCP, which is not encrypted: use a private network. With
--- a token strangers cannot take part; where only this machine reaches the address (127.0.0.1) none is needed.
---@param options rille.CommunicatorOptions who this is, and where the others are
---@return Communicator comm when all have come
---@mark ephemeral
---@async
---@error timeout ranks did not come in time; the message names them, at every rank
---@error invalid the ranks do not agree in `world`, device or transport; a rank is there twice; no token
---@error config a rank runs another build of Rille
---@error auth another token
---@error network nothing can listen at the address, or a rank went away
---@error device on a GPU: there is no NCCL
---@example
--- local comm = rille.communicator { rank = args.rank, world = 2, address = "127.0.0.1:29500" }
function rille.communicator(options) end

---@class rille.CommunicatorOptions
---@field rank integer this process's, from 0
---@field world integer how many ranks there are, at most 256
---@field address? string host and port where rank 0 listens, "10.0.0.1:29500"; a world of one needs none
---@field token? string a secret that all ranks know
---@field device? Device|string whose tensors it takes; the default device otherwise
---@field timeout? string|number for all ranks to come, and of each call that makes no progress: "5m" by default
---@field transport? string "any" (by default), or "tcp": no shared memory

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
---@field gpu? string|table "any" (a GPU that Rille runs on, or this machine's CPU), "cpu", a model as in "A100", a
---model and a count as in "A100:8", or a list of models of which any will do; without it a GPU or none
---@field count? number GPUs per machine
---@field gpu_memory? string of each GPU at least, as in "40GB"
---@field gpu_vendor? string "nvidia", "amd" or "intel"
---@field disk_kind? string of the disk that comes with the machine: "nvme" in it, or "network"
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
---@field workload? string for that rank: what `rille.train` measured under this name; `tokens_per_second` overrides it
---@field estimated? boolean true takes GPUs that it was not measured on by their TFLOPs, in proportion
---@field provider? string only this provider, as in "local"
---@field ttl? string the longest that it may live; a budget can shorten it
---@field min_ttl? string refuse a shorter life than this
---@field orphan_after? string how long the instance waits for a lost runner before it ends itself
---@field idle_after? string end it when nobody has used it for so long: no call, no file, no busier than `idle_below`
---@field idle_below? number how busy an unused machine may be, from 0 to 1, by default 0.05
---@field disk? string a disk to order with the machine, as in "200GB"
---@field price? number dollars per hour, where the provider does not say so, or of the `reservation`
---@field on_loss? string "replace" goes on with another machine when this one is lost, "fail" raises an error
---@field cluster? string of the run: machines that say the same reach each other at all ports, where Rille makes their
---network's rules; `rille.cluster` says its name of its members
---@field gpu_check? boolean false takes a machine that does not show the GPUs it was rented with, with a warning
---@field cuda? boolean false rents a GPU that this build of Rille cannot use, for programs of your own (`box:exec`)
---@field unguarded? boolean true accepts machines that nobody ends when the runner is lost for ever
---@field hold_ttl? string how long it is kept for a run that was suspended, killed, or has diverged: "12h"
---@field reservation? string capacity that was reserved, by its name or id there: on demand from `provider` "aws",
---"azure", "gcp", "alibaba", and "slurm"
---@field qos? string the job's quality of service, its priority among others: `provider` "slurm"
---@field image? string what the machine starts from, in the words of its one `provider`
---@field priority_class? string the pod's priority among others: `provider` "kubernetes"

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
---
--- With a `workload` each offer has `tokens_from` beside `tokens_per_dollar`: "given", "measured", "estimated", or "not
--- measured"; the last come last.
---@param query? rille.OfferQuery what to look for; everything by default. `timeout`, as in "20s", is how long each
---provider has; without it 30 seconds, and 10 or a little more once another has offers
---@return table offers a list that prints as a table; after the offers a row with `error` for each provider, or region
---of one, that could not be asked, and one with `note` where types were left out
---@mark durable
---@async
---@error invalid an unknown field of the query, or a workload that was never measured
---@example
--- print(rille.offers { gpu = "A100:8", interconnect = "nvswitch", rank = "price_per_tflop" })
function rille.offers(query) end

--- Tells what spot machines have cost, type by type, at each provider that keeps that.
---
--- Each row has `provider`, `type`, `currency`, `zones`, `points`, `from` (since when anything is known), the prices
--- per hour `lowest`, `median`, `highest` and `now`, and `samples`: up to 24 prices of the cheapest zone, at equal
--- distances until now. A provider that could not be asked is a row with `error`.
---@param query? rille.PriceHistoryQuery which machines, and how far back
---@return table history a list that prints as a table
---@mark durable
---@async
---@error invalid an unknown field of the query, or a provider that is not there
---@example
--- print(rille.price_history { gpu = "A100", since = "7d" })
function rille.price_history(query) end

--- Tells how much the accounts may rent at a time: the quotas that matter for GPUs, in the providers' own words.
---
--- Each row has `provider`, `region`, `name`, `limit`, and `used` where it is told. A provider that could not be asked
--- is a row with `error`; one that tells no quotas is left out unless it is named.
---@param query? table `provider` or `providers`, and `region`; all that are set up by default
---@return table quotas a list that prints as a table
---@mark durable
---@async
---@error invalid an unknown field of the query, or a provider that is not there
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
---@field gpu? string|table "any" (a GPU that Rille runs on, or this machine's CPU), "cpu", a model, a model and a count
---as in "A100:8", or a list of models; without it all there is
---@field count? number GPUs per machine
---@field gpu_memory? string of each GPU at least, as in "40GB"
---@field gpu_vendor? string "nvidia", "amd" or "intel"
---@field disk_kind? string of the disk that comes with the machine: "nvme" in it, or "network"
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
---@field workload? string for that rank: what `rille.train` measured under this name; `tokens_per_second` overrides it
---@field estimated? boolean true takes GPUs that it was not measured on by their TFLOPs, in proportion

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
---@field alert_url? string where the warning goes, too: https://.. is POSTed JSON, mailto:me@example.org an e-mail;
---env:NAME: what that variable says, which is written nowhere
---@field tag? string whose budget the run shares, see `rille budget`
---@field month? number dollars that all runs of this home may come to in this month for this run to rent

return rille
