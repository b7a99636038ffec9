#include "runtime/workflow/provider/lambda/instances.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "runtime/core/net/credentials/plain_key.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider::lambda {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr net::Meaning meanings[] = {
    {"instance-operations/launch/insufficient-capacity", Trouble::capacity},
    {"global/quota-exceeded", Trouble::quota, "ask Lambda's support for more"},
    {"global/account-inactive", Trouble::quota, "the account is inactive: see Lambda's dashboard"},
    {"global/too-many-requests", Trouble::throttle},
    {"global/invalid-api-key", Trouble::auth, "is the key correct, and not deleted? docs/manual/providers/lambda.md"},
    {"global/forbidden", Trouble::auth},
    {"global/object-does-not-exist", Trouble::not_found},
    {"global/not-found", Trouble::not_found},
    {"global/conflict", Trouble::conflict},
    {"global/duplicate", Trouble::conflict},
    {"global/internal-error*", Trouble::transient},
    {"provider/*", Trouble::transient},  // errors of Lambda's suppliers, also while an instance boots
};

// Reads a response: {"data": ..}, or {"error": {"code", "message", "suggestion"}}.
net::Answer read_answer(const net::HttpResponse& response) {
  net::Answer out;
  Result<Value> value = Value::from_json(response.body);
  if (value) out.value = (*value)["data"];
  const Value error = value ? (*value)["error"] : Value();
  out.code = error.text("code");
  out.message = error.text("message");
  if (const std::string advice = error.text("suggestion"); !advice.empty()) out.message += " " + advice;
  out.foreign = out.code.empty() && (!response.ok() || out.value.is_null());
  return out;
}

net::ApiOptions options() {
  net::ApiOptions out;
  out.provider = "lambda";
  out.meanings = meanings;
  out.read = read_answer;
  out.sign = net::bear_plain_key;
  out.throttle_ms = 2'000;  // Lambda allows one launch per 12 s and one call per s, and sends no Retry-After
  return out;
}

// GPU model and memory in bytes from Lambda's description, such as "A100 (40 GB SXM4)"; memory 0: unknown.
std::pair<std::string, std::int64_t> gpu_of(std::string words) {
  std::int64_t gib = 0;
  if (const std::size_t open = words.find('('); open != std::string::npos)
    std::from_chars(words.data() + open + 1, words.data() + words.size(), gib);
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == '(' || c == ')'; }, ' ');
  return {gpu_model(words), amounts::bytes(static_cast<double>(gib), amounts::gib)};
}

Offer read_type(const Value& v) {
  Offer out;
  out.id = v.text("name");
  out.vcpus = amounts::count(v["specs"].number("vcpus"));
  out.memory_bytes = amounts::bytes(v["specs"].number("memory_gib"), amounts::gib);
  out.gpu_count = amounts::count(v["specs"].number("gpus"));
  if (out.gpu_count > 0) std::tie(out.gpu, out.gpu_memory_bytes) = gpu_of(v.text("gpu_description"));
  out.price_micros_per_hour = amounts::price(v.number("price_cents_per_hour") / 100);
  out.billing.unit_s = 60;
  out.billing.from_live = true;
  return out;
}

Instance read_instance(const Value& v) {
  Instance out;
  out.id = v.text("id");
  out.status = v.text("status");
  out.region = v["region"].text("name");
  out.type = v["instance_type"].text("name");
  out.address = v.text("ip");
  for (const Value& tag : list_of(v["tags"]))
    if (tag.text("key") == tag_key) out.tag = tag.text("value");
  return out;
}

}  // namespace

net::CredentialChain key_chain(Loop& loop) {
  std::vector<net::KeySource> sources{net::key_from_variable("LAMBDA_API_KEY"),
                                      net::key_from_file(".lambda_cloud/lambda_keys", "", "api_key")};
  return {loop, "lambda", std::move(sources),
          "set LAMBDA_API_KEY, or write api_key = .. to ~/.lambda_cloud/lambda_keys"};
}

Instances::Instances(Loop& loop, net::CredentialChain& keys, const Value& endpoints)
    : url_(endpoints.text("lambda", "https://cloud.lambda.ai/api/v1")), api_(loop, options(), keys) {}

Async<Value> Instances::call(std::string operation, std::string method, std::string path, Value body, Effect effect,
                             CancelToken token) {
  net::Parts parts = net::json_request(method, url_, path, body);
  co_return co_await api_.call(std::move(operation), std::move(parts), effect, std::move(token));
}

Async<std::vector<Offer>> Instances::sold(CancelToken token) {
  RILLE_CO_TRY(const Value answer,
               co_await call("listInstanceTypes", "GET", "/instance-types", Value(), Effect::none, token));
  std::vector<Offer> out;
  if (!answer.as_object()) co_return net::not_theirs("lambda", "listInstanceTypes");
  for (const auto& [name, v] : *answer.as_object()) {
    Offer offer = read_type(v["instance_type"]);
    if (offer.price_micros_per_hour <= 0) continue;
    for (const Value& region : list_of(v["regions_with_capacity_available"])) {
      offer.region = region.text("name");
      out.push_back(offer);
    }
  }
  co_return out;
}

Async<std::string> Instances::launch(Value request, std::int64_t send_by_wall_us, CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await call("launchInstance", "POST", "/instance-operations/launch",
                                                 std::move(request), Effect::lasting.by(send_by_wall_us), token));
  const Value::Array ids = list_of(answer["instance_ids"]);
  if (ids.empty() || !ids[0].as_string()) co_return net::not_theirs("lambda", "launchInstance");
  co_return *ids[0].as_string();
}

Async<Instance> Instances::describe(std::string id, CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await call("getInstance", "GET", "/instances/" + net::percent_encode(id), Value(),
                                                 Effect::none, token));
  if (answer.text("id") != id) co_return net::not_theirs("lambda", "getInstance");
  co_return read_instance(answer);
}

Async<std::vector<Instance>> Instances::list(CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await call("listInstances", "GET", "/instances", Value(), Effect::none, token));
  if (!answer.as_array()) co_return net::not_theirs("lambda", "listInstances");
  std::vector<Instance> out;
  for (const Value& v : *answer.as_array()) out.push_back(read_instance(v));
  co_return out;
}

Async<> Instances::terminate(std::string id, CancelToken token) {
  Value body;
  body.set("instance_ids", Value::Array{Value(id)});
  auto answer = co_await call("terminateInstance", "POST", "/instance-operations/terminate", std::move(body),
                              Effect::none, token);
  if (!answer) co_return answer.error();
  for (const Value& ended : list_of((*answer)["terminated_instances"]))
    if (ended.text("id") == id) co_return success();
  co_return net::not_theirs("lambda", "terminateInstance");
}

Async<> Instances::offer_key(std::string name, std::string public_line, CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await call("listSSHKeys", "GET", "/ssh-keys", Value(), Effect::none, token));
  if (!answer.as_array()) co_return net::not_theirs("lambda", "listSSHKeys");
  for (const Value& key : *answer.as_array())
    if (key.text("name") == name) co_return success();
  Value body;
  body.set("name", std::move(name)).set("public_key", std::move(public_line));
  auto added = co_await call("addSSHKey", "POST", "/ssh-keys", std::move(body), Effect::lasting, token);
  if (!added) co_return added.error();
  co_return success();
}

Async<Identity> Instances::identity(CancelToken token) {
  RILLE_CO_CHECK(co_await list(token));
  Identity out;
  out.age_unknown = "Lambda does not tell it";
  out.skew_us = api_.skew_us();
  co_return out;
}

}  // namespace rille::provider::lambda
