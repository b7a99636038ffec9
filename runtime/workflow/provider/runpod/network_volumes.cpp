// The calls of Pods for network volumes, by REST v2.
#include "runtime/core/net/credentials/plain_key.hpp"
#include "runtime/workflow/provider/runpod/pods.hpp"

namespace rille::provider::runpod {

namespace {

using net::Effect;
using net::list_of;

NetworkVolume read_volume(const Value& v) {
  NetworkVolume out;
  out.id = v.text("id");
  out.name = v.text("name");
  out.center = v.text("dataCenter");
  out.type = v.text("type");
  out.size_gb = v.integer("size");
  return out;
}

}  // namespace

Async<std::vector<std::string>> Pods::centers_of(std::string volume_type, CancelToken token) {
  net::Parts parts = net::json_request("GET", rest_url_, "/catalog/datacenters");
  parts.query = {{"networkVolumeTypes", volume_type}};
  RILLE_CO_TRY(const Value answer, co_await rest_.call("listDataCenters", std::move(parts), Effect::none, token));
  if (!answer["dataCenters"].as_array()) co_return net::not_theirs("runpod", "listDataCenters");
  std::vector<std::string> out;
  for (const Value& v : *answer["dataCenters"].as_array())
    for (const Value& type : list_of(v["networkVolumeTypes"]))
      if (type.as_string() && *type.as_string() == volume_type) out.push_back(v.text("id"));
  co_return out;
}

Async<NetworkVolume> Pods::create_volume(NetworkVolume order, std::int64_t send_by_wall_us, CancelToken token) {
  Value body;
  body.set("name", order.name).set("size", order.size_gb).set("dataCenter", order.center).set("type", order.type);
  net::Parts parts = net::json_request("POST", rest_url_, "/network-volumes", body);
  const Effect effect = Effect::lasting.by(send_by_wall_us);
  RILLE_CO_TRY(const Value answer, co_await rest_.call("createNetworkVolume", std::move(parts), effect, token));
  if (answer.text("id").empty()) co_return net::not_theirs("runpod", "createNetworkVolume");
  co_return read_volume(answer);
}

Async<NetworkVolume> Pods::volume(std::string id, CancelToken token) {
  net::Parts parts = net::json_request("GET", rest_url_, "/network-volumes/" + net::percent_encode(id));
  RILLE_CO_TRY(const Value answer, co_await rest_.call("getNetworkVolume", std::move(parts), Effect::none, token));
  if (answer.text("id") != id) co_return net::not_theirs("runpod", "getNetworkVolume");
  co_return read_volume(answer);
}

Async<std::vector<NetworkVolume>> Pods::volumes(CancelToken token) {
  net::Parts parts = net::json_request("GET", rest_url_, "/network-volumes");
  RILLE_CO_TRY(const Value answer, co_await rest_.call("listNetworkVolumes", std::move(parts), Effect::none, token));
  if (!answer["networkVolumes"].as_array()) co_return net::not_theirs("runpod", "listNetworkVolumes");
  std::vector<NetworkVolume> out;
  for (const Value& v : *answer["networkVolumes"].as_array()) out.push_back(read_volume(v));
  co_return out;
}

Async<> Pods::delete_volume(std::string id, CancelToken token) {
  net::Parts parts = net::json_request("DELETE", rest_url_, "/network-volumes/" + net::percent_encode(id));
  auto answer = co_await rest_.call("deleteNetworkVolume", std::move(parts), Effect::none, token);
  if (!answer) co_return answer.error();
  if (!answer->is_null()) co_return net::not_theirs("runpod", "deleteNetworkVolume");
  co_return success();
}

}  // namespace rille::provider::runpod
