// `rille estimate`: rille.estimate from the command line: `--gpu H100 --hours 8`, or a model and what is done with it.
// It runs rille.estimate in a Lua state without a run, so nothing is journaled; the offers come from the cache of
// `rille offers`, else from the providers, and list prices stand in where no live price is known.
#include <fmt/format.h>

#include <map>

#include "bindings/cli/command.hpp"
#include "bindings/cli/offers.hpp"
#include "bindings/host/host.hpp"
#include "bindings/lua/open.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/ask.hpp"

namespace rille::cli {

namespace {

using provider::OfferQuery;

// The options that rille.estimate takes under the same name, as text.
struct Taken {
  const char *flag, *name, *text;
};
constexpr Taken taken[] = {
    {"--hours", "hours", "of a rental: what machines cost for so many hours"},
    {"--model", "model", "what is trained or served: gpt2, llama-7b, resnet50, .."},
    {"--params", "params", "or any transformer with so many parameters: 7B"},
    {"--tokens", "tokens", "to train on: 10B; with --epochs, per epoch"},
    {"--epochs", "epochs", "over the data set"},
    {"--steps", "steps", "or so many steps of --batch"},
    {"--samples", "samples", "images or sequences of the data set"},
    {"--batch", "batch", "images or sequences in one step of all GPUs; for a service, requests at a time"},
    {"--micro-batch", "micro_batch", "images or sequences that one GPU works on at a time"},
    {"--context", "context", "tokens in a sequence"},
    {"--precision", "precision", "bf16, fp16, fp32, tf32, fp8; for a service also int8, int4"},
    {"--optimizer", "optimizer", "adamw, lamb, sgd"},
    {"--deadline", "deadline", "as many machines as needed to finish by then: 24h"},
    {"--gpus", "gpus", "exactly so many GPUs in all"},
    {"--requests-per-second", "requests_per_second", "makes it an estimate of a service"},
    {"--prompt-tokens", "prompt_tokens", "of a request"},
    {"--output-tokens", "output_tokens", "of an answer"},
    {"--latency", "latency", "the longest that an answer may take: 2s"},
    {"--rows", "rows", "how many plans are shown"},
};

constexpr const char* estimate_script = R"(
local options, of = ...
local rille = require "rille"
require("rille.estimate.offers").answer_by(of)
local result = rille.estimate(options)
return tostring(result), result
)";

// A number where the text is one, else the text.
Value number_or_text(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return !text.empty() && !*end ? Value(number) : Value(text);
}

// What answers the estimate's queries for offers.
struct Asking {
  App& app;
  const provider::OfferSettings& settings;
  OfferLimits limits;
};

// of(query), in place of rille.offers.
Result<int> answer_offers(lua_State* L) {
  const Asking& asking = *static_cast<const Asking*>(lua_touserdata(L, lua_upvalueindex(1)));
  RILLE_TRY(const Value asked, host::to_value(L, 1, "offers"));
  RILLE_TRY(OfferQuery query, OfferQuery::from_value(asked));
  query.rates.insert(asking.settings.rates.begin(), asking.settings.rates.end());
  RILLE_TRY(const FoundOffers found, collect_offers(asking.app, query, asking.settings, asking.limits, 0));
  host::push_value(L, offers_value(found, query, asking.app.loop->clock().wall_us()));
  return 1;
}

struct Estimated {
  std::string text;
  Value result;
};

Result<Estimated> estimate_with(Asking& asking, const Value& options) {
  host::HostOptions settings;
  settings.rules = host::Rules::open;
  settings.open = lua::openers();
  RILLE_TRY(const std::unique_ptr<host::LuaHost> lua_host,
            host::LuaHost::create(*asking.app.loop, std::move(settings)));
  Estimated out;
  RILLE_CHECK(host::protect(lua_host->lua(), [&](lua_State* L) {
    host::value_or_raise(L, lua_host->compile(L, estimate_script, "=estimate", true));
    host::push_value(L, options);
    lua_pushlightuserdata(L, &asking);
    lua_pushcclosure(L, host::bind<answer_offers>, 1);
    lua_call(L, 2, 2);
    std::size_t size = 0;
    const char* text = lua_tolstring(L, -2, &size);
    out.text.assign(text, size);
    out.result = host::value_or_raise(L, host::to_value(L, lua_gettop(L), "the estimate"));
  }));
  return out;
}

struct EstimateCommand final : Command {
  std::map<std::string, std::string> values;  // by the name that rille.estimate has for it
  std::vector<std::string> gpu, providers, regions, assume;
  std::string max_age = "10m", timeout;
  bool spot = false;
  void declare(Options& o) override {
    o.option("--gpu", gpu, "only these: model and count, e.g. H100:8, or several").separated_by_commas();
    for (const Taken& one : taken) o.option(one.flag, values[one.name], one.text);
    o.option("--assume", assume, "another value for an assumption: NAME=VALUE, e.g. utilization=0.4")
        .separated_by_commas();
    o.option("--provider", providers, "only these providers").separated_by_commas();
    o.option("--region", regions, "only these regions").separated_by_commas();
    o.flag("--spot", spot, "only spot machines");
    o.option("--max-age", max_age, "how old a price may be").shows_default();
    o.option("--timeout", timeout, "time that each provider has to answer, e.g. 20s");
  }
  Result<Value> options() const;
  Exit run(App& app) override;
};

Result<Value> EstimateCommand::options() const {
  Value out = Value::Object{}, query = Value::Object{}, assumed = Value::Object{};
  for (const auto& [name, text] : values)
    if (!text.empty()) out.set(name, number_or_text(text));
  if (gpu.size() == 1) out.set("gpu", gpu.front());
  if (gpu.size() > 1) out.set("gpu", Value::Array(gpu.begin(), gpu.end()));
  if (!providers.empty()) query.set("providers", Value::Array(providers.begin(), providers.end()));
  if (!regions.empty()) query.set("regions", Value::Array(regions.begin(), regions.end()));
  if (spot) query.set("spot", true);
  for (const std::string& word : assume) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      return make_error(ErrorKind::invalid, fmt::format("--assume {}: expected NAME=VALUE", word),
                        "as in --assume utilization=0.4,spot_discount=0.6");
    assumed.set(word.substr(0, equals), number_or_text(word.substr(equals + 1)));
  }
  if (!query.as_object()->empty()) out.set("offers", std::move(query));
  if (!assumed.as_object()->empty()) out.set("assume", std::move(assumed));
  return out;
}

Exit EstimateCommand::run(App& app) {
  Result<Value> asked = options();
  if (!asked) return fail_usage(app, asked.error());
  Result<std::int64_t> max_age_ms = parse_duration_ms(max_age);
  if (!max_age_ms) return fail_usage(app, max_age_ms.error());
  Value times;
  if (!timeout.empty()) times.set("timeout", timeout);
  Result<std::int64_t> timeout_ms = lease::take_timeout(times);
  if (!timeout_ms) return fail_usage(app, timeout_ms.error());
  Result<provider::OfferSettings> settings = offer_settings(app);
  if (!settings) return fail(app, settings.error());
  Asking asking{app, *settings, {*max_age_ms * 1000, *timeout_ms}};
  Result<Estimated> out = estimate_with(asking, *asked);
  if (!out) return fail(app, out.error());
  app.terminal.out((app.json ? out->result.to_json_pretty() : out->text) + "\n");
  return Exit::ok;
}

const Registered<EstimateCommand> estimate_row({Group::money, "estimate",
                                                "what hours of GPUs, a training or a service would cost",
                                                Opens::nothing});

}  // namespace

}  // namespace rille::cli
