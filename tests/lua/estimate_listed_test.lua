-- run: durable
-- rille.estimate without a live price: list prices with their dates, or the maker's data; `gpu`, and `hours`.
local rille = require "rille"
local tap = require "tap"

local function noted(r, name)
  for _, a in ipairs(r.assumptions) do if a.name == name then return a.why end end
end

-- No provider of this run rents GPUs: there is only this machine.
local function asked_for(query, more)
  local o = { model = "gpt2", tokens = "1B", offers = query }
  for key, value in pairs(more or {}) do o[key] = value end
  local r = rille.estimate(o)
  local seen = {}
  for _, plan in ipairs(r.plans) do seen[#seen + 1] = ("%d x %s"):format(plan.gpus_each, plan.gpu) end
  table.sort(seen)
  return r, seen
end

tap.test("without a query and without an offer the list prices are reckoned with, and it says so", function()
  for _, query in ipairs { {}, { gpu = "any" }, { rates = { CNY = 0.14 }, regions = {} } } do
    local r, seen = asked_for(query)
    tap.ok(#seen > 8, table.concat(seen, ", "))
    tap.equal(r.unpriced, "no provider offers a GPU: list prices instead")
    tap.ok(tostring(r):find("\nNo live prices: no provider offers a GPU: list prices instead.", 1, true), tostring(r))
    tap.equal(noted(r, "offers"), r.unpriced)
  end
end)

tap.test("each plan says of which day its list prices are, wherever it is shown", function()
  local r, seen = asked_for { gpu = "H100:8" }
  for _, name in ipairs(seen) do tap.equal(name, "8 x H100") end
  local best, providers = r.plans[1], {}
  for _, plan in ipairs(r.plans) do
    providers[plan.provider] = plan
    tap.ok(plan.list_price_of:find("^20%d%d%-%d%d%-%d%d"), plan.list_price_of)
  end
  tap.equal({ best.provider, best.price_per_hour, best.list_price_of }, { "lambda", 31.92, "2026-10-10" })
  tap.equal(providers.gcp.list_price_of, "2025-03-06 to 2026-10-10", "its commitments were read earlier")
  tap.equal({ providers.gcp.reserved["1y"].from, best.reserved["1y"].from }, { "list", "assumed" })
  tap.equal(r.list_price_of, "2025-03-06 to 2026-10-10")
  tap.ok(r.recommendation:find("on demand (list price of 2026-10-10)", 1, true), r.recommendation)
  tap.ok(tostring(r):find("LIST PRICE OF\n", 1, true) and tostring(r):find("2026-10-10\n", 1, true), tostring(r))
  -- of offers with a price, and of those without
  local live = rille.estimate { model = "gpt2", tokens = "1B", offers = { { gpu = "H100", price_per_hour = 3 } } }
  tap.equal({ live.list_price_of, live.plans[1].list_price_of }, {})
  tap.ok(not tostring(live):find("[Ll][Ii][Ss][Tt] [Pp]rice") and not tostring(live):find("LIST PRICE"), tostring(live))
end)

tap.test("list prices of a query: its provider, its region, its limit, its way to pay", function()
  local aws = asked_for { gpu = "H100", provider = "aws" }
  tap.ok(#aws.plans > 0)
  for _, plan in ipairs(aws.plans) do tap.equal(plan.provider, "aws") end
  for _, plan in ipairs(asked_for({ gpu = "T4", region = "eu-central-1" }).plans) do
    tap.equal({ plan.provider, plan.region }, { "aws", "eu-central-1" })
  end
  for _, plan in ipairs(asked_for({ gpu = "any", max_price = 1 }).plans) do
    tap.ok((plan.price_per_hour or 0) <= 1 and (plan.spot_price_per_hour or 0) <= 1)
  end
  for _, plan in ipairs(asked_for({ spot = true }).plans) do
    tap.ok(plan.spot_price_per_hour and not plan.price_per_hour)
  end
  -- B200 of gcp has only a spot price in the list
  local b200 = asked_for { gpu = "B200:8", provider = "gcp" }
  tap.equal({ b200.plans[1].price_per_hour, b200.plans[1].spot_price_per_hour }, { nil, 39.6336 })
end)

tap.test("offers without a live price have the list price of their provider", function()
  local offers = require "rille.estimate.offers"
  offers.answer_by(function(query)
    if query.spot then return {} end
    return { { provider = "aws", id = "us-east-1/p5.48xlarge", region = "us-east-1", gpu = "H100", gpu_count = 8,
      gpu_memory_bytes = 80e9 }, { provider = "tencent", id = "x", gpu = "H100", gpu_count = 8 } }
  end)
  local done, r = pcall(rille.estimate, { model = "gpt2", tokens = "1B", gpu = "H100:8" })
  offers.answer_by(nil)
  tap.ok(done, r)
  tap.equal({ #r.plans, r.plans[1].provider, r.plans[1].price_per_hour, r.plans[1].list_price_of }, { 2, "aws", 55.04,
    "2026-10-10" })
  tap.equal({ r.plans[2].provider, r.plans[2].price_per_hour, r.plans[2].list_price_of }, { "tencent" })
  tap.ok(r.unpriced:find("no offer has a live price", 1, true), r.unpriced)
end)

tap.test("gpu is taken as rent takes it", function()
  local r = rille.estimate { model = "gpt2", tokens = "1B", gpu = "H100:8", offers = { provider = "lambda" } }
  tap.equal({ #r.plans, r.plans[1].gpus_each, r.plans[1].provider }, { 1, 8, "lambda" })
  local two = rille.estimate { model = "gpt2", tokens = "1B", gpu = { "L4", "T4" } }
  for _, plan in ipairs(two.plans) do tap.ok(plan.gpu == "L4" or plan.gpu == "T4", plan.gpu) end
  local function refuses(text, options) return tap.raises("invalid", text, rille.estimate, options) end
  refuses("gpu is given twice", { model = "gpt2", tokens = 1, gpu = "H100", offers = { gpu = "A100" } })
  local list = { { gpu = "T4" } }
  refuses('gpu = "H100" together with a list', { model = "gpt2", tokens = 1, gpu = "H100", offers = list })
  refuses("gpu = 8; a name", { model = "gpt2", tokens = 1, gpu = 8 })
  local err = refuses("gpu alone says nothing to do", { gpu = "H100" })
  tap.ok(err.hint:find("hours = 8", 1, true), err.hint)
end)

tap.test("a rental: hours of machines, whatever they do", function()
  local r = rille.estimate { gpu = "H100:8", hours = 8 }
  local best = r.plans[1]
  tap.equal({ r.kind, r.hours, best.provider, best.cost.on_demand, best.machines }, { "rental", 8, "lambda", 8 * 31.92,
    1 })
  local text = tostring(r)
  tap.ok(text:find("machines for 8.0 h", 1, true) and text:find("$255", 1, true)
    and text:find("list price of 2026-10-10", 1, true) and not text:find("assumptions", 1, true), text)
  local gcp = rille.estimate { gpu = "H100:8", hours = "2h", offers = { provider = "gcp" } }.plans[1]
  tap.ok(math.abs(gcp.cost.reserved_3y - 2 * 38.864381) < 1e-9, gcp.cost.reserved_3y)
  local list = { { gpu = "A100", gpu_count = 8, price_per_hour = 16, spot_price_per_hour = 8, provider = "x" } }
  local given = rille.estimate { hours = 10, gpus = 16, offers = list }
  tap.equal({ given.plans[1].cost, given.plans[1].machines }, { { on_demand = 320, spot = 160 }, 2 })
  tap.equal(given.recommendation, "Take 2 machines of 8 x A100 from x: $320 on demand, $160 on spot for 10.0 h.")
  tap.equal(rille.estimate({ hours = 1, gpus = 12, offers = list }).skipped[1].obstacle, "gpus")
  local function refuses(text, options) return tap.raises("invalid", text, rille.estimate, options) end
  refuses("model has no meaning for a rental of hours", { hours = 8, model = "gpt2" })
  refuses("hours = 0", { hours = 0, gpu = "H100" })
  refuses("hours = soon", { hours = "soon", gpu = "H100" })
end)

tap.test("a GPU without an offer and a list price is estimated alone, with its count, and without a price", function()
  local r, seen = asked_for { gpu = "A100-80GB:3" }
  tap.equal(seen, { "3 x A100 80GB SXM" })
  tap.equal(r.unpriced, 'no offer of a GPU passes gpu = "A100-80GB:3": this GPU by its maker\'s data, without a price')
  tap.ok(tostring(r):find('\nNo prices: no offer of a GPU passes gpu = "A100-80GB:3"', 1, true), tostring(r))
  tap.equal({ r.plans[1].price_per_hour, r.plans[1].cost.on_demand, r.list_price_of }, {})
  tap.equal({ select(2, asked_for { gpu = "A30" }) }, { { "1 x A30" } })
  tap.equal({ select(2, asked_for { gpu = "t4", count = 3 }) }, { { "3 x T4" } })
  -- In a service, too.
  local service = rille.estimate { model = "resnet50", requests_per_second = 1, gpu = "A30" }
  tap.equal({ service.plans[1].gpu, #service.plans }, { "A30", 1 })
end)

tap.test("a filter that no offer passes is named, and nothing else is recommended in its place", function()
  local r, seen = asked_for { gpu = "H100:8", max_price = 1, regions = { "a", "b" } }
  tap.equal(seen, { "8 x H100 80GB SXM" })
  local both, reckoned = asked_for { gpu = { "H100:8", "B200" }, count = 1, max_price = 1 }
  tap.equal(reckoned, { "1 x B200", "8 x H100 80GB SXM" })
  tap.ok(both.recommendation:find('gpu = { "H100:8", "B200" }', 1, true) and
    both.recommendation:find("these GPUs by their makers' data", 1, true), both.recommendation)
  local filter = 'no offer of a GPU passes gpu = "H100:8", max_price = 1, regions = { "a", "b" } (`rille offers` ' ..
    "with the same says what comes nearest)"
  tap.ok(r.recommendation:find("No prices: " .. filter, 1, true) == 1, r.recommendation)
  local none_passes = { { max_price = 0.01 }, { provider = "local" }, { interconnect = "xgmi" }, { vcpus = 4000 } }
  for _, query in ipairs(none_passes) do
    local none, plans = asked_for(query)
    local key, value = next(query)
    local said = ("No prices: no offer of a GPU passes %s = %s "):format(key,
      type(value) == "string" and ('"%s"'):format(value) or tostring(value))
    tap.equal({ plans, none.skipped }, { {}, {} })
    tap.ok(none.recommendation:find(said, 1, true) == 1, none.recommendation)
    tap.ok(tostring(none):find("(no machine to estimate)", 1, true)
      and not tostring(none):find("no provider offers", 1, true), tostring(none))
  end
  -- A list without a GPU, or an empty one, is not a query: no provider is called.
  local cpus = { { provider = "x", id = "cpu", gpu = "", gpu_count = 0, price_per_hour = 0.1 } }
  for _, list in ipairs { cpus, rille.offers { gpu = "B200" } } do
    local empty, plans = asked_for(list)
    tap.equal({ plans, empty.unpriced }, { {}, "the offers given have no GPU" })
  end
end)

tap.test("a GPU that is neither offered nor known is refused, with the name that is near", function()
  local function refused(query)
    return tap.raises("invalid", "nothing is known of a GPU", asked_for, query)
  end
  tap.ok(refused({ gpu = "H1O0" }).message:find('no offer of a GPU passes gpu = "H1O0"; and nothing is known of a ' ..
    "GPU 'H1O0'", 1, true))
  tap.equal(refused({ gpu = "H1O0:8", max_price = 3 }).hint, "did you mean 'H100'?")
  -- Where a provider failed that is part of the reason, and points at no result that does not exist.
  local nothing = require "rille.estimate.nothing"
  local failed = tap.raises("invalid", "1 of the providers failed; and nothing", nothing.instead, { gpu = "H1O0" }, 1)
  tap.ok(not failed.message:find("result.skipped", 1, true), failed.message)
  tap.equal(select(2, nothing.instead({ gpu = "T4" }, 2)), 'no offer of a GPU passes gpu = "T4", and 2 of the ' ..
    "providers failed, see result.skipped: this GPU by its maker's data, without a price")
  tap.equal(refused({ gpu = "Zeppelin" }).hint, "print(rille.gpus()) lists those that are known")
  tap.raises("invalid", "supports GPUs only", asked_for, { gpu = "CPU" })
end)

tap.done()
