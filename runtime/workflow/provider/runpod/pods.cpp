#include "runtime/workflow/provider/runpod/pods.hpp"

#include <fmt/format.h>

#include <cmath>

#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/plain_key.hpp"
#include "runtime/workflow/provider/amounts.hpp"

namespace rille::provider::runpod {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr const char* ssh_port = "22/tcp";

// RunPod ends GraphQL in early 2027, and REST v2 has neither spot machines nor a pod's processors and memory. So
// GraphQL serves `shapes` and the creation of spot pods. Without GraphQL on-demand offers lack a pod's processors and
// memory, and renting spot ends with this error. All other calls use REST.
constexpr const char* graphql_gone = "graphql-gone";

// RunPod's REST errors have an HTTP status and a message but no code. Status 400 of a create means missing capacity or
// an invalid request, so both count as missing capacity and the next offer is tried. A malformed body gets status 422.
constexpr net::Meaning meanings[] = {
    {"no-room", Trouble::capacity},
    {"low-bid", Trouble::capacity, "the market price is above your maximum: raise max_price"},
    {"not-found", Trouble::not_found},
    {"in-use", Trouble::conflict, "a pod or an endpoint has the volume: end that one first"},
    {"no-money", Trouble::quota, "the account's balance is too low"},
    {"400", Trouble::capacity, "RunPod reports missing capacity and invalid requests alike: see its message"},
    {"402", Trouble::quota, "the account's balance is too low"},
    {"401", Trouble::auth, "is the key correct, and not deleted? docs/manual/providers/runpod.md"},
    {"403", Trouble::auth, "the key lacks a permission: it needs read and write access to pods"},
    {graphql_gone, Trouble::invalid, "rent on demand: RunPod's other API has no spot machines"},
    // Codes of GraphQL, where the HTTP status means nothing. After any other code the call may have taken effect.
    {"INTERNAL_SERVER_ERROR", Trouble::transient},
    {"BAD_USER_INPUT", Trouble::invalid},
    {"GRAPHQL_*", Trouble::invalid},
    {"UNAUTHENTICATED", Trouble::auth, "is the key correct, and not deleted? docs/manual/providers/runpod.md"},
    {"FORBIDDEN", Trouble::auth, "the key lacks a permission: it needs read and write access to pods"},
};

std::string code_of(const std::string& words) {
  const std::string text = net::lower_case(words);
  const auto says = [&text](const char* part) { return text.find(part) != std::string::npos; };
  if (says("no longer any instances") || says("no instances")) return "no-room";
  if (says("bid") && says("low")) return "low-bid";
  if (says("not found")) return "not-found";
  if (says("remove this network volume from")) return "in-use";
  if (says("balance") || says("credit")) return "no-money";
  return "";
}

// Reads a REST response. Errors have the form of RFC 9457: {"title", "status", "detail", "errors"}.
net::Answer read_rest(const net::HttpResponse& response) {
  net::Answer out;
  Result<Value> value = Value::from_json(response.body);
  if (value) out.value = std::move(*value);
  out.foreign = !out.value.as_object() && !(response.status == 204 && response.body.empty());
  if (response.ok() || out.foreign) return out;
  out.message = out.value.text("detail", out.value.text("title"));
  out.foreign = out.message.empty();
  if (out.value["errors"].as_array()) out.message += " " + out.value["errors"].to_json();
  out.code = response.status == 400 ? code_of(out.message) : "";
  if (out.code.empty() || out.code == "not-found") out.code = std::to_string(response.status);
  return out;
}

// Reads a GraphQL response, which may have HTTP status 200 and still contain errors.
net::Answer read_graphql(const net::HttpResponse& response) {
  net::Answer out;
  Result<Value> value = Value::from_json(response.body);
  if (value) out.value = std::move(*value);
  const Value::Array* errors = out.value["errors"].as_array();
  if (errors && !errors->empty() && (*errors)[0].as_object()) {
    out.message = (*errors)[0].text("message");
    out.code = response.ok() ? code_of(out.message) : std::to_string(response.status);
    // Use GraphQL's own code if the query itself is wrong, since another offer would not help.
    if (response.status == 400 || out.code.empty()) out.code = (*errors)[0]["extensions"].text("code", "GraphQL");
  } else {
    out.foreign = !response.ok() || !out.value["data"].as_object();
  }
  Value data = out.value["data"];
  out.value = std::move(data);
  return out;
}

// For queries only: after a mutation a 404, perhaps a proxy's, does not show whether a pod was made.
net::Answer read_query(const net::HttpResponse& response) {
  if (response.status != 404 && response.status != 410) return read_graphql(response);
  net::Answer out;
  out.code = graphql_gone;
  out.message = "RunPod's GraphQL API is not there any more";
  return out;
}

net::ApiOptions options_for(net::Answer (*read)(const net::HttpResponse&)) {
  net::ApiOptions out;
  out.provider = "runpod";
  out.meanings = meanings;
  out.read = read;
  out.sign = net::bear_plain_key;
  return out;
}

Micros micros(double dollars) { return std::max<Micros>(0, amounts::price(dollars)); }

constexpr double port_max = 65'535;

Pod read_pod(const Value& v) {
  Pod out;
  out.id = v.text("id");
  out.name = v.text("name");
  out.status = v.text("status");
  out.center = v.text("dataCenterId");
  out.type = fmt::format("{} x{}", v["gpu"].text("id"), v["gpu"].integer("count", 1));
  if (v["cost"].as_number()) out.micros_per_hour = micros(v.number("cost"));
  if (const Result<std::int64_t> created = parse_utc(v.text("createdAt"))) out.created_wall_us = *created;
  out.address = v["ssh"]["direct"].text("host");
  out.port = amounts::count(v["ssh"]["direct"].number("port"), port_max);
  for (const Value& mount : list_of(v["mounts"]["network"])) out.volumes.push_back(mount.text("volumeId"));
  for (const Value& port : list_of(v["runtime"]["ports"])) {
    if (!out.address.empty() || port.integer("private") != 22) continue;
    out.address = port.text("ip");
    out.port = amounts::count(port.number("public"), port_max);
  }
  return out;
}

}  // namespace

net::CredentialChain key_chain(Loop& loop) {
  std::vector<net::KeySource> sources{net::key_from_variable("RUNPOD_API_KEY"),
                                      net::key_from_file(".runpod/config.toml", "default", "api_key"),
                                      net::key_from_file(".runpod/config.toml", "", "apikey")};
  return {loop, "runpod", std::move(sources), "set RUNPOD_API_KEY, or run runpodctl config"};
}

Pods::Pods(Loop& loop, net::CredentialChain& keys, const Value& endpoints)
    : rest_url_(endpoints.text("rest", "https://api.runpod.io/v2")),
      graphql_url_(endpoints.text("graphql", "https://api.runpod.io/graphql")),
      rest_(loop, options_for(read_rest), keys), graphql_(loop, options_for(read_graphql), keys),
      queries_(loop, options_for(read_query), keys) {}

Async<Value> Pods::ask(std::string operation, std::string query, Value variables, Effect effect, CancelToken token) {
  Value body;
  body.set("query", std::move(query)).set("variables", std::move(variables));
  net::Parts parts = net::json_request("POST", graphql_url_, "", body);
  net::Api& api = effect.lasts ? graphql_ : queries_;
  co_return co_await api.call(std::move(operation), std::move(parts), effect, std::move(token));
}

Async<std::vector<Sold>> Pods::sold(int count, CancelToken token) {
  net::Parts parts = net::json_request("GET", rest_url_, "/catalog/gpus");
  parts.query = {{"include", "AVAILABILITY"}, {"product", "POD"}, {"cloud", "SECURE"}};
  parts.query.emplace_back("count", std::to_string(count));
  RILLE_CO_TRY(const Value answer, co_await rest_.call("listGpus", std::move(parts), Effect::none, token));
  std::vector<Sold> out;
  if (!answer["gpus"].as_array()) co_return net::not_theirs("runpod", "listGpus");
  for (const Value& v : *answer["gpus"].as_array()) {
    Sold sold;
    sold.id = v.text("id");
    sold.name = v.text("name");
    sold.memory_bytes = amounts::bytes(v.number("memory"), amounts::gib);
    sold.micros_per_gpu_hour = micros(v["price"].number("secure"));
    if (sold.micros_per_gpu_hour == 0 || v["maxCount"].integer("secure", count) < count) continue;
    for (const Value& center : list_of(v["dataCenters"]))
      if (center.text("availability", "NONE") != "NONE") sold.centers.push_back(center.text("id"));
    out.push_back(std::move(sold));
  }
  co_return out;
}

Async<Shapes> Pods::shapes(std::vector<int> counts, CancelToken token) {
  std::string query = "query { gpuTypes { id";
  for (const int count : counts)
    query += fmt::format(
        " x{0}: lowestPrice(input: {{gpuCount: {0}, secureCloud: true}}) "
        "{{ minimumBidPrice minVcpu minMemory }}",
        count);
  query += " } }";
  Value none{Value::Object{}};
  RILLE_CO_TRY(const Value answer, co_await ask("gpuTypes", std::move(query), std::move(none), Effect::none, token));
  Shapes out;
  if (!answer["gpuTypes"].as_array()) co_return net::not_theirs("runpod", "gpuTypes");
  for (const Value& v : *answer["gpuTypes"].as_array()) {
    for (const int count : counts) {
      const Value& lowest = v[fmt::format("x{}", count)];
      Shape& shape = out[{v.text("id"), count}];
      shape.vcpus = amounts::count(lowest.number("minVcpu"));
      shape.memory_bytes = amounts::bytes(lowest.number("minMemory"), amounts::gib);
      shape.bid_micros_per_gpu_hour = micros(lowest.number("minimumBidPrice"));
    }
  }
  co_return out;
}

Async<std::string> Pods::create(Order order, CancelToken token) {
  const Effect effect = Effect::lasting.by(order.send_by_wall_us);
  Value body;
  body.set("name", order.name);
  Value pod;
  if (order.bid_micros_per_gpu_hour > 0) {
    body.set("imageName", order.image).set("gpuTypeId", order.gpu).set("gpuCount", order.count);
    body.set("cloudType", "SECURE").set("dataCenterId", order.center).set("containerDiskInGb", order.disk_gb);
    body.set("volumeInGb", 0).set("ports", ssh_port).set("dockerArgs", order.start_command);
    body.set("supportPublicIp", true).set("startSsh", true);
    body.set("bidPerGpu", static_cast<double>(order.bid_micros_per_gpu_hour) / 1e6);
    if (!order.volume.empty()) body.set("networkVolumeId", order.volume).set("volumeMountPath", order.mount_path);
    Value variables;
    variables.set("input", std::move(body));
    RILLE_CO_TRY(const Value data, co_await ask("podRentInterruptable",
                                                "mutation($input: PodRentInterruptableInput!) { "
                                                "podRentInterruptable(input: $input) { id } }",
                                                std::move(variables), effect, token));
    pod = data["podRentInterruptable"];
  } else {
    body.set("image", order.image).set("args", order.start_command).set("disk", order.disk_gb);
    body.set("ports", Value::Array{Value(ssh_port)}).set("cloud", "SECURE").set("startSsh", true);
    body.set("gpu", Value().set("id", order.gpu).set("count", order.count));
    body.set("dataCenterIds", Value::Array{Value(order.center)});
    if (!order.volume.empty()) {
      Value mount;
      mount.set("volumeId", order.volume).set("path", order.mount_path);
      body.set("mounts", Value().set("network", Value::Array{std::move(mount)}));
    }
    net::Parts parts = net::json_request("POST", rest_url_, "/pods", body);
    RILLE_CO_TRY(pod, co_await rest_.call("createPod", std::move(parts), effect, token));
  }
  if (pod.text("id").empty()) co_return net::not_theirs("runpod", "createPod");
  co_return pod.text("id");
}

Async<Pod> Pods::describe(std::string id, CancelToken token) {
  net::Parts parts = net::json_request("GET", rest_url_, "/pods/" + net::percent_encode(id));
  RILLE_CO_TRY(const Value answer, co_await rest_.call("getPod", std::move(parts), Effect::none, token));
  if (answer.text("id") != id) co_return net::not_theirs("runpod", "getPod");
  co_return read_pod(answer);
}

Async<std::vector<Pod>> Pods::list(CancelToken token) {
  net::Parts parts = net::json_request("GET", rest_url_, "/pods");
  RILLE_CO_TRY(const Value answer, co_await rest_.call("listPods", std::move(parts), Effect::none, token));
  if (!answer["pods"].as_array()) co_return net::not_theirs("runpod", "listPods");
  std::vector<Pod> out;
  for (const Value& v : *answer["pods"].as_array()) out.push_back(read_pod(v));
  co_return out;
}

Async<> Pods::terminate(std::string id, CancelToken token) {
  net::Parts parts = net::json_request("DELETE", rest_url_, "/pods/" + net::percent_encode(id));
  auto answer = co_await rest_.call("deletePod", std::move(parts), Effect::none, token);
  if (!answer) co_return answer.error();
  if (!answer->is_null()) co_return net::not_theirs("runpod", "deletePod");  // RunPod's success response is empty
  co_return success();
}

Async<Value> Pods::me(CancelToken token) {
  net::Parts parts = net::json_request("GET", rest_url_, "/account");
  RILLE_CO_TRY(Value answer, co_await rest_.call("getAccount", std::move(parts), Effect::none, std::move(token)));
  if (answer.text("id").empty()) co_return net::not_theirs("runpod", "getAccount");
  co_return answer;
}

Async<std::string> Pods::account(CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await me(std::move(token)));
  co_return answer.text("id");
}

// Also lists the pods, so that a key without that right is detected.
Async<Identity> Pods::identity(CancelToken token) {
  RILLE_CO_TRY(const Value answer, co_await me(token));
  RILLE_CO_CHECK(co_await list(token));
  Identity out;
  out.account = answer.text("id");
  out.who = answer.text("email", out.account);
  out.age_unknown = "RunPod does not tell it";
  out.skew_us = rest_.skew_us();
  co_return out;
}

bool is_graphql_gone(const Error& error) { return error.code == graphql_gone; }

}  // namespace rille::provider::runpod
