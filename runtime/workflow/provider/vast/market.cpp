#include "runtime/workflow/provider/vast/market.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "runtime/core/net/credentials/plain_key.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider::vast {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

// A search returns at most 64 offers, whatever its limit: seen by several clients, not documented.
constexpr int search_rows = 64, searches_max = 16, page_rows = 25, pages_max = 800;
constexpr double reliability_least = 0.98;
constexpr double hours_per_month = 730;

constexpr const char* gone_ask = "no_such_ask";

constexpr net::Meaning meanings[] = {
    {gone_ask, Trouble::capacity, "it has been rented meanwhile: request offers again"},
    {"invalid_price", Trouble::capacity, "the market price is above your maximum: raise max_price"},
    {"insufficient_credit", Trouble::quota, "the account's balance is too low"},
    {"no_such_instance", Trouble::not_found},
    {"auth_error", Trouble::auth, "is the key correct, and not deleted? docs/manual/providers/vast.md"},
};

// Common GPU names, by which Vast can search. A GPU that is not in this list is searched among the cheapest offers.
struct Known {
  const char* name;
  std::int64_t gib;
};
constexpr Known known[] = {
    {"H200", 141},       {"H200 NVL", 141},   {"H100 SXM", 80},    {"H100 PCIE", 80},   {"H100 NVL", 94},
    {"B200", 180},       {"A100 SXM4", 40},   {"A100 SXM4", 80},   {"A100 PCIE", 40},   {"A100 PCIE", 80},
    {"A100X", 80},       {"L40S", 48},        {"L40", 48},         {"L4", 24},          {"A40", 48},
    {"A10", 24},         {"A30", 24},         {"A16", 16},         {"RTX A6000", 48},   {"RTX A5000", 24},
    {"RTX A4000", 16},   {"RTX 6000Ada", 48}, {"RTX 5000Ada", 32}, {"RTX 5090", 32},    {"RTX 5080", 16},
    {"RTX 4090", 24},    {"RTX 4080", 16},    {"RTX 3090", 24},    {"RTX 3090 Ti", 24}, {"RTX 3080", 10},
    {"RTX 2080 Ti", 11}, {"Tesla T4", 16},    {"Tesla V100", 16},  {"Tesla V100", 32},  {"Tesla P100", 16},
};

Value rule(const char* how, Value what) { return Value().set(how, std::move(what)); }
Micros micros(double dollars) { return std::max<Micros>(0, amounts::price(dollars)); }

// The text of an id, which is a number in Vast's JSON; "": not an id.
std::string id_of(const Value& v) {
  return v.as_number() && *v.as_number() > 0 && *v.as_number() < 9e15
             ? std::to_string(static_cast<std::int64_t>(*v.as_number()))
             : "";
}

Value search_of(const OfferQuery& query) {
  Value out;
  out.set("limit", search_rows).set("type", query.spot ? "bid" : "ondemand");
  out.set("rentable", rule("eq", true)).set("rented", rule("eq", false)).set("verified", rule("eq", true));
  out.set("reliability", rule("gte", reliability_least)).set("num_gpus", rule("gte", 1));
  const std::vector<int> counts = query.counts();
  if (counts.size() == 1) out.set("num_gpus", rule("eq", counts.front()));
  if (query.max_price_micros_per_hour && !query.spot)
    out.set("dph_total", rule("lte", static_cast<double>(*query.max_price_micros_per_hour) / 1e6));
  out.set("order", Value::Array{Value(Value::Array{Value(query.spot ? "min_bid" : "dph_total"), Value("asc")})});
  Value::Array names;
  for (const Known& gpu : known) {
    const auto is_it = [&gpu](const Value& name) { return *name.as_string() == gpu.name; };
    const bool there = std::any_of(names.begin(), names.end(), is_it);
    if (!there && query.accepts_gpu(gpu_model(gpu.name), gpu.gib << 30)) names.emplace_back(gpu.name);
  }
  const bool all = query.gpu == "any" && query.gpus.empty() && query.gpu_memory_bytes == 0;
  if (!names.empty() && !all) out.set("gpu_name", rule("in", std::move(names)));
  return out;
}

std::optional<Offer> read_ask(const Value& v, bool spot) {
  Offer out;
  out.id = id_of(v["id"]);
  out.gpu = gpu_model(v.text("gpu_name"));
  out.gpu_count = amounts::count(v.number("num_gpus"));
  out.gpu_memory_bytes = amounts::bytes(v.number("gpu_ram"), amounts::mib);
  out.vcpus = amounts::count(v.number("cpu_cores_effective"));
  out.memory_bytes = amounts::bytes(v.number("cpu_ram"), amounts::mib);
  out.region = v.text("geolocation");
  const double price = spot ? v.number("min_bid", v.number("dph_total")) : v.number("dph_total");
  out.price_micros_per_hour = micros(price);
  // GPUs with the SXM socket have NVLink. Only Vast's gpu_name has the socket; the offer's `gpu` omits it.
  if (out.gpu_count > 1 && v.text("gpu_name").find("SXM") != std::string::npos) out.interconnect = "nvlink";
  if (const double cuda = v.number("cuda_max_good"); cuda > 0) out.cuda_max = fmt::format("{:.1f}", cuda);
  out.driver = v.text("driver_version");
  out.disk_bytes_max = amounts::bytes(v.number("disk_space"), 1e9);
  out.disk_micros_per_gb_hour = micros(v.number("storage_cost") / hours_per_month);
  if (out.id.empty() || out.gpu_count < 1 || out.region.empty() || out.region.find('/') != std::string::npos ||
      !(price > 0))
    return {};
  return out;
}

Instance read_instance(const Value& v) {
  Instance out;
  out.id = id_of(v["id"]);
  out.status = v.text("actual_status");
  out.label = v.text("label");
  out.place = v.text("geolocation");
  out.type = fmt::format("{} x{}", v.text("gpu_name"), v.integer("num_gpus", 1));
  out.stopped = v.text("cur_state") == "stopped" && v.text("next_state") == "stopped";
  out.outbid = out.stopped && v.text("intended_status") == "stopped" && v.boolean("is_bid");
  out.created_wall_us = amounts::wall_us(v.number("start_date"));
  // Use the price without the disk if Vast returns it (dph_base), since Rille counts the disk's price separately.
  const char* const price = v["dph_base"].as_number() ? "dph_base" : "dph_total";
  if (v[price].as_number()) out.micros_per_hour = micros(v.number(price));
  for (const Value& port : list_of(v["ports"]["22/tcp"])) {
    out.address = v.text("public_ipaddr");
    out.port = std::atoi(port.text("HostPort").c_str());
  }
  out.address.erase(0, out.address.find_first_not_of(" \n"));
  out.address.erase(out.address.find_last_not_of(" \n") + 1);
  return out;
}

// Reads a response; an error is {"success": false, "error", "msg"} or plain text. If a refused create has made an
// instance, request_id gets the instance's id.
net::Answer read_answer(const net::HttpResponse& response) {
  net::Answer out;
  Result<Value> value = Value::from_json(response.body);
  if (value) out.value = std::move(*value);
  out.foreign = !out.value.as_object();
  if (out.foreign || (response.ok() && out.value.boolean("success", true))) return out;
  out.code = out.value.text("error");
  out.message = out.value.text("msg");
  // An offer that is gone has 404 or 400 and "invalid_args", and only the message has the reason; 410 has it as code.
  if (out.message.find(gone_ask) != std::string::npos) out.code = gone_ask;
  out.foreign = out.code.empty() && out.message.empty();
  out.request_id = id_of(out.value["new_contract"]);
  return out;
}

net::ApiOptions options() {
  net::ApiOptions out;
  out.provider = "vast";
  out.meanings = meanings;
  out.read = read_answer;
  out.sign = net::bear_plain_key;
  out.throttle_ms = 2'000;  // Vast sends no Retry-After header
  return out;
}

}  // namespace

net::CredentialChain key_chain(Loop& loop) {
  std::vector<net::KeySource> sources{net::key_from_variable("VAST_API_KEY"),
                                      net::key_from_file(".config/vastai/vast_api_key", "", ""),
                                      net::key_from_file(".vast_api_key", "", "")};
  return {loop, "vast", std::move(sources), "set VAST_API_KEY, or run vastai set api-key"};
}

Market::Market(Loop& loop, net::CredentialChain& keys, const Value& endpoints)
    : url_(endpoints.text("vast", "https://console.vast.ai/api")), api_(loop, options(), keys) {}

Async<Value> Market::call(std::string operation, net::Parts parts, Effect effect, CancelToken token) {
  co_return co_await api_.call(std::move(operation), std::move(parts), effect, std::move(token));
}

Async<std::vector<Offer>> Market::asks(OfferQuery query, CancelToken token) {
  const char* const price = query.spot ? "min_bid" : "dph_total";
  Value search = search_of(query);
  std::vector<Offer> out;
  std::set<std::string> seen;
  for (int i = 0; i < searches_max; ++i) {  // each goes on at the last price; beyond all, dearer offers are left out
    net::Parts parts = net::json_request("POST", url_, "/v0/bundles/", search);
    RILLE_CO_TRY(const Value answer, co_await call("searchOffers", std::move(parts), Effect::none, token));
    if (!answer["offers"].as_array()) co_return net::not_theirs("vast", "searchOffers");
    const Value::Array& rows = *answer["offers"].as_array();
    bool any_new = false;
    for (const Value& v : rows) {
      if (!seen.insert(id_of(v["id"])).second) continue;
      any_new = true;
      if (std::optional<Offer> offer = read_ask(v, query.spot)) out.push_back(std::move(*offer));
    }
    if (rows.size() < search_rows) break;
    const double last = rows.back().number(price);
    Value from = search[price].as_object() ? search[price] : Value(Value::Object{});
    from.as_object()->erase("gte");
    from.set(any_new ? "gte" : "gt", last);  // more offers of one price than a search returns are skipped
    search.set(price, std::move(from));
  }
  co_return out;
}

Async<std::string> Market::rent(std::string ask, Value request, std::int64_t send_by_wall_us, CancelToken token) {
  net::Parts parts = net::json_request("PUT", url_, "/v0/asks/" + net::percent_encode(ask) + "/", request);
  Result<Value> answer = co_await call("createInstance", std::move(parts), Effect::lasting.by(send_by_wall_us), token);
  if (const std::string stray = answer ? "" : answer.error().request_id; !stray.empty()) {
    const Result<> ended = co_await destroy(stray, CancelToken());  // own token: a cancel of rent must not stop this
    if (!ended && ended.error().http_status != 404) {
      Error open = ended.error();
      open.kind = ErrorKind::network;  // makes the lease layer search for the instance by its label
      open.message = "the create was refused, and its instance " + stray + " cannot be destroyed: " + open.message;
      co_return open;
    }
  }
  if (!answer) co_return answer.error();
  const std::string id = id_of((*answer)["new_contract"]);
  if (id.empty()) co_return net::not_theirs("vast", "createInstance");
  co_return id;
}

Async<Instance> Market::describe(std::string id, CancelToken token) {
  net::Parts parts = net::json_request("GET", url_, "/v0/instances/" + net::percent_encode(id) + "/");
  RILLE_CO_TRY(const Value answer, co_await call("showInstance", std::move(parts), Effect::none, token));
  // "instances" is null if there is no such instance; without that field the response is not Vast's.
  if (!answer.as_object()->contains("instances")) co_return net::not_theirs("vast", "showInstance");
  Instance out = read_instance(answer["instances"]);
  if (!out.id.empty() && out.id != id) co_return net::not_theirs("vast", "showInstance");
  co_return out;
}

Async<std::vector<Instance>> Market::list(CancelToken token) {
  std::vector<Instance> out;
  std::string after;
  for (int page = 0; page < pages_max; ++page) {
    net::Parts parts = net::json_request("GET", url_, "/v1/instances");
    parts.query.emplace_back("limit", std::to_string(page_rows));
    if (!after.empty()) parts.query.emplace_back("after_token", after);
    RILLE_CO_TRY(const Value answer, co_await call("listInstances", std::move(parts), Effect::none, token));
    if (!answer["instances"].as_array()) co_return net::not_theirs("vast", "listInstances");
    for (const Value& v : *answer["instances"].as_array()) out.push_back(read_instance(v));
    after = answer.text("next_token");
    if (after.empty()) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Vast's answer to listInstances has more than {} pages, which is the most that Rille reads",
                  pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<> Market::destroy(std::string id, CancelToken token) {
  net::Parts parts = net::json_request("DELETE", url_, "/v0/instances/" + net::percent_encode(id) + "/");
  auto answer = co_await call("destroyInstance", std::move(parts), Effect::none, token);
  if (!answer) co_return answer.error();
  if (!answer->boolean("success")) co_return net::not_theirs("vast", "destroyInstance");
  co_return success();
}

Async<Value> Market::user(CancelToken token) {
  net::Parts parts = net::json_request("GET", url_, "/v0/users/current/");
  co_return co_await call("showUser", std::move(parts), Effect::none, std::move(token));
}

Async<std::string> Market::account(CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await user(std::move(token)));
  co_return answer["id"].is_null() ? std::string() : id_of(answer["id"]);
}

Async<Identity> Market::identity(CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await user(token));
  Identity out;
  out.who = answer.text("email", answer.text("username"));
  out.account = fmt::format("{}, credit ${:.2f}", id_of(answer["id"]), answer.number("credit"));
  out.age_unknown = "Vast does not tell it";
  out.skew_us = api_.skew_us();
  co_return out;
}

}  // namespace rille::provider::vast
