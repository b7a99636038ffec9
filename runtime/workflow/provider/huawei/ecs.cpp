#include "runtime/workflow/provider/huawei/ecs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/sign/huawei.hpp"
#include "runtime/workflow/provider/amounts.hpp"
#include "runtime/workflow/provider/cloud/attaching.hpp"
#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/gpus.hpp"
#include "runtime/workflow/provider/outcome.hpp"

namespace rille::provider::huawei {

namespace {

using net::Effect;
using net::list_of;
using net::Trouble;

constexpr int page_rows = 100, page_flavors = 1000, pages_max = 200;
constexpr std::int64_t create_patience_ms = 300'000, remove_patience_ms = 60'000, resize_patience_ms = 600'000;

// The domain of ECS and EVS in all regions, also in Europe's, whose IAM has another domain (regions of Huawei's SDK).
constexpr const char* machine_domain = "myhuaweicloud.com";
constexpr const char* other_site_code = "CBC.0156";  // price service: the account is of Huawei's other site

constexpr net::Meaning meanings[] = {
    {"Ecs.0219", Trouble::capacity},
    {"Ecs.0042", Trouble::capacity},
    {"Ecs.0319", Trouble::capacity},
    {"Ecs.0001", Trouble::quota, "request more on the console's quota page, or use another region"},
    {"Ecs.0003", Trouble::auth, "the account is restricted: check its balance"},
    {"Ecs.0012", Trouble::quota, "the subnet has no free address: name another subnet"},
    {"APIGW.0308", Trouble::throttle},
    {"Ecs.0114", Trouble::not_found},
    {"EVS.2024", Trouble::not_found},
    {"EVS.2044", Trouble::conflict, "a server has the disk: release that server first"},
    {other_site_code, Trouble::auth,
     "the account belongs to another site: set its price service: \"endpoints\": {\"bss\": ..}"},
    // Huawei returns APIGW.0301 for a wrong clock and also for a wrong key.
    {"APIGW.0301", Trouble::clock, "the access key, its secret, or this machine's clock is wrong"},
    {"APIGW.0302", Trouble::auth, "the key has no access to this project: `project` must be the region's"},
};

// Reads errors: {"error": {..}}, {"badRequest": {..}} or {"itemNotFound": {..}}, and {"error_code": ..} of the gateway.
net::Answer read_answer(const net::HttpResponse& response) {
  net::Answer out;
  if (Result<Value> value = Value::from_json(response.body)) out.value = std::move(*value);
  out.request_id = response.header("x-request-id");
  out.foreign = !out.value.as_object();
  if (response.ok() || out.foreign) return out;
  out.code = out.value.text("error_code");
  out.message = out.value.text("error_msg");
  for (const auto& [name, error] : *out.value.as_object()) {
    if (!out.code.empty() || !error.as_object()) continue;
    out.code = error.text("code");
    out.message = error.text("message");
  }
  out.foreign = out.code.empty() && out.message.empty();
  return out;
}

net::ApiOptions options() {
  net::ApiOptions out;
  out.provider = "huawei";
  out.meanings = meanings;
  out.read = read_answer;
  out.sign = [](net::Parts parts, const net::Credentials& who, std::int64_t us) {
    return net::sign_huawei(std::move(parts), who, us);
  };
  return out;
}

// Reads a number that the response may contain as a string; 0: neither.
double number_of(const Value& v) {
  if (v.as_number()) return *v.as_number();
  return v.as_string() ? number_at(*v.as_string()) : 0;
}

bool is_on_sale(std::string_view state) { return state == "normal" || state == "promotion" || state == "obt"; }

// Whether the flavor is sold in the zone ("": in any zone). `zones` is "az1(normal), az2(sellout)"; `status` applies to
// zones that `zones` does not name. If both are empty, the flavor is sold on demand but not as spot.
bool is_sold(const Value& specs, const std::string& zone, bool spot) {
  const std::string zones = specs.text(spot ? "cond:spot:operation:az" : "cond:operation:az");
  const std::string status = specs.text(spot ? "cond:spot:operation:status" : "cond:operation:status");
  bool named = false;
  for (std::size_t at = 0; at < zones.size();) {
    const std::size_t end = std::min(zones.find(',', at), zones.size());
    const std::string one = zones.substr(at, end - at);
    const std::size_t bracket = one.find('('), first = one.find_first_not_of(' ');
    const bool is_zone = bracket != std::string::npos && first < bracket;
    if (is_zone && (zone.empty() || one.substr(first, bracket - first) == zone)) {
      named = true;
      if (is_on_sale(std::string_view(one).substr(bracket + 1, one.find(')') - bracket - 1))) return true;
    }
    at = end + 1;
  }
  return !named && (status.empty() ? !spot : is_on_sale(status));
}

// Reads the JSON string "info:gpus": [{"name": "NVIDIA T4", "count": 1, "memory_mb": 16384}]; or "t4:direct:1" (older).
void read_gpus(const Value& specs, Offer& offer) {
  const Result<Value> told = Value::from_json(specs.text("info:gpus"));
  const Value::Array rows = told ? list_of(*told) : Value::Array();
  if (!rows.empty()) {
    offer.gpu = gpu_model(rows[0].text("name"));
    offer.gpu_count = amounts::count(number_of(rows[0]["count"]));
    offer.gpu_memory_bytes = amounts::bytes(number_of(rows[0]["memory_mb"]), amounts::mib);
    return;
  }
  const std::string passed = specs.text("pci_passthrough:gpu_specs");
  const std::size_t first = passed.find(':'), last = passed.rfind(':');
  if (first == std::string::npos) return;
  offer.gpu = gpu_model(passed.substr(0, first));
  offer.gpu_count = std::atoi(passed.c_str() + last + 1);
}

Server read_server(const Value& v) {
  Server out;
  out.id = v.text("id");
  out.status = v.text("status");
  out.task = v.text("OS-EXT-STS:task_state");
  out.zone = v.text("OS-EXT-AZ:availability_zone");
  out.type = v["flavor"].text("id");
  out.problem = v["fault"].text("message");
  const std::string prefix = std::string(tag_key) + "=";
  for (const Value& tag : list_of(v["tags"]))
    if (tag.as_string() && tag.as_string()->starts_with(prefix))
      out.tag = full_tag(tag.as_string()->substr(prefix.size()));
  for (const auto& [network, addresses] : v["addresses"].as_object() ? *v["addresses"].as_object() : Value::Object())
    for (const Value& address : list_of(addresses))
      (address.text("OS-EXT-IPS:type") == "floating" ? out.address : out.private_address) = address.text("addr");
  for (const auto& [key, value] : v["metadata"].as_object() ? *v["metadata"].as_object() : Value::Object())
    if (value.as_string()) cloud::read_mount_tag(key, *value.as_string(), out.volumes);
  for (const Value& disk : list_of(v["os-extended-volumes:volumes_attached"])) out.disks.push_back(disk.text("id"));
  if (const Result<std::int64_t> created = parse_utc(v.text("created"))) out.created_wall_us = *created;
  return out;
}

}  // namespace

// Machines and disks of European regions are under the common domain too; accounts and bills are not.
std::string address_of(const std::string& service, const std::string& region) {
  if (service.starts_with("bss")) return "https://" + service + "." + domain_of(region);
  return "https://" + service + "." + region + "." + (service == "iam" ? domain_of(region) : machine_domain);
}

Ecs::Ecs(Loop& loop, net::CredentialChain& keys, std::string region, std::string project, const Value& endpoints)
    : loop_(loop), region_(std::move(region)), project_(std::move(project)),
      ecs_url_(endpoints.text("ecs", address_of("ecs", region_))),
      evs_url_(endpoints.text("evs", address_of("evs", region_))),
      iam_url_(endpoints.text("iam", address_of("iam", region_))),
      bss_url_(endpoints.text("bss", address_of("bss", region_))),
      other_bss_url_(endpoints.text("bss_intl", endpoints.text("bss").empty() ? address_of("bss-intl", region_) : "")),
      api_(loop, options(), keys) {}

// `path` begins with the service's name, which selects the URL: "ecs/v1/{project}/jobs".
Async<Value> Ecs::call(std::string method, std::string path, net::Query query, Value body, Effect effect,
                       CancelToken token, std::string client_token) {
  const std::size_t slash = path.find('/');
  const std::string service = path.substr(0, slash);
  const std::string url = service == "iam"   ? iam_url_
                          : service == "bss" ? bss_url_
                          : service == "evs" ? evs_url_
                                             : ecs_url_;
  path = path.substr(slash);
  net::Parts parts;
  parts.headers = {{"Content-Type", "application/json"}};
  if (const std::size_t at = path.find("{project}"); at != std::string::npos) {
    RILLE_CO_TRY(const std::string id, co_await project(token));
    path.replace(at, 9, id);
    parts.headers.emplace_back("X-Project-Id", id);
  }
  if (!client_token.empty()) parts.headers.emplace_back("X-Client-Token", std::move(client_token));
  parts.method = method;
  parts.scheme = url.substr(0, url.find("://"));
  parts.host = url.substr(url.find("://") + 3);
  parts.path = net::encode_path(path);
  parts.query = std::move(query);
  if (body.as_object()) parts.body = to_plain_json(body);
  const std::string operation = method + " " + path;
  if (service != "bss" || other_bss_url_.empty())
    co_return co_await api_.call(operation, std::move(parts), effect, std::move(token));
  Result<Value> answer = co_await api_.call(operation, parts, effect, token);
  if (answer || answer.error().code != other_site_code) co_return answer;
  // The account is of Huawei's other site: use its price service from now on, unless a concurrent call has switched.
  if (bss_url_ == url) std::swap(bss_url_, other_bss_url_);
  parts.scheme = bss_url_.substr(0, bss_url_.find("://"));
  parts.host = bss_url_.substr(bss_url_.find("://") + 3);
  co_return co_await api_.call(operation, std::move(parts), effect, std::move(token));
}

Async<std::string> Ecs::project(CancelToken token) {
  if (!project_.empty()) co_return project_;
  net::Query query{{"name", region_}};
  RILLE_CO_TRY(const Value answer,
               co_await call("GET", "iam/v3/projects", std::move(query), Value(), Effect::none, token));
  if (!answer["projects"].as_array()) co_return net::not_theirs("huawei", "GET /v3/projects");
  for (const Value& row : *answer["projects"].as_array())
    if (row.text("name") == region_) project_ = row.text("id");
  if (project_.empty())
    co_return make_error(ErrorKind::config, fmt::format("huawei: no project is named {}", region_),
                         "set the project's id: \"project\": \"0123..\"");
  co_return project_;
}

Async<Value::Array> Ecs::flavor_rows(std::string zone, CancelToken token) {
  Value::Array out;
  std::string last;
  for (int page = 0; page < pages_max; ++page) {
    net::Query query{{"limit", std::to_string(page_flavors)}};
    if (!last.empty()) query.emplace_back("marker", last);
    if (!zone.empty()) query.emplace_back("availability_zone", zone);
    RILLE_CO_TRY(const Value answer, co_await call("GET", "ecs/v1/{project}/cloudservers/flavors", std::move(query),
                                                   Value(), Effect::none, token));
    if (!answer["flavors"].as_array()) co_return net::not_theirs("huawei", "the list of flavors");
    const Value::Array& rows = *answer["flavors"].as_array();
    out.insert(out.end(), rows.begin(), rows.end());
    if (rows.size() < page_flavors) co_return out;
    last = rows.back().text("id");
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Huawei's list of flavors (machine types) has more than {} pages, which is the most that Rille reads",
                  pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<std::vector<Offer>> Ecs::flavors(std::string zone, bool spot, CancelToken token) {
  RILLE_CO_TRY(const Value::Array rows, co_await flavor_rows(zone, token));
  std::vector<Offer> out;
  for (const Value& v : rows) {
    const Value& specs = v["os_extra_specs"];
    if (specs.text("ecs:instance_architecture").starts_with("arm")) continue;
    if (!is_sold(specs, zone, spot)) continue;
    Offer offer;
    offer.id = v.text("id");
    offer.vcpus = amounts::count(number_of(v["vcpus"]));
    offer.memory_bytes = amounts::bytes(number_of(v["ram"]), amounts::mib);
    read_gpus(specs, offer);
    out.push_back(std::move(offer));
  }
  co_return out;
}

Async<cloud::Price> Ecs::price(std::string flavor, std::string zone, bool spot, bool reserved, CancelToken token) {
  RILLE_CO_TRY(const std::string id, co_await project(token));
  Value product;
  product.set("id", "1").set("cloud_service_type", "hws.service.type.ec2");
  product.set("resource_type", "hws.resource.type.vm").set("region", region_).set("available_zone", zone);
  product.set("resource_spec", flavor + (spot ? ".spot" : "") + ".linux");
  product.set("subscription_num", 1);
  const Value for_years = product;
  product.set("usage_factor", "Duration").set("usage_value", 1).set("usage_measure_id", 4);
  Value asked;
  asked.set("project_id", id).set("inquiry_precision", 1).set("product_infos", Value::Array{std::move(product)});
  net::Query none;
  RILLE_CO_TRY(const Value answer, co_await call("POST", "bss/v2/bills/ratings/on-demand-resources", std::move(none),
                                                 std::move(asked), Effect::none, token));
  cloud::Price out;
  const double amount = answer.number("amount", -1);
  out.currency = answer.text("currency", "CNY");
  out.micros_per_hour = cloud::micros_of(amount);
  if (!reserved) co_return out;
  co_return co_await add_reserved(std::move(out), for_years, std::move(token));
}

// Adds the prices with a commitment of 1 and 3 years, requested in one call. It fails if the flavor has no such price;
// then only the on-demand price is returned.
Async<cloud::Price> Ecs::add_reserved(cloud::Price price, Value product, CancelToken token) {
  RILLE_CO_TRY(const std::string id, co_await project(token));
  Value::Array products;
  for (const int years : {1, 3}) {
    Value one = product;
    one.set("id", std::to_string(years)).set("period_type", 3).set("period_num", years);
    products.push_back(std::move(one));
  }
  Value asked;
  asked.set("project_id", id).set("product_infos", std::move(products));
  net::Query none;
  const Result<Value> answer = co_await call("POST", "bss/v2/bills/ratings/period-resources/subscribe-rate",
                                             std::move(none), std::move(asked), Effect::none, token);
  if (!answer && token.cancelled()) co_return answer.error();
  if (!answer) co_return price;
  for (const Value& row : list_of((*answer)["official_website_rating_result"]["product_rating_results"])) {
    const int years = row.text("id") == "3" ? 3 : 1;
    (years == 1 ? price.reserved_1y : price.reserved_3y) =
        cloud::hourly_of(row.number("official_website_amount"), years);
  }
  co_return price;
}

Async<Value> Ecs::finished(std::string job, std::int64_t limit_ms, CancelToken token) {
  cloud::Patience patience(loop_, limit_ms);
  for (;;) {
    net::Query none;
    RILLE_CO_TRY(Value told,
                 co_await call("GET", "ecs/v1/{project}/jobs/" + job, std::move(none), Value(), Effect::none, token));
    const std::string status = told.text("status");
    if (status == "SUCCESS" || status == "FAIL") co_return told;
    if (status.empty()) co_return net::not_theirs("huawei", "job " + job);
    RILLE_CO_CHECK(co_await patience.next("job " + job, token));
  }
}

// Changes the error kind to capacity if the message says "sold out": Huawei documents no code for a sold-out flavor.
Error Ecs::refused(Error error) const {
  if (error.kind != ErrorKind::invalid) return error;
  const std::string said = net::lower_case(error.message);
  for (const char* word : {"sold out", "sellout", "no valid host", "insufficient", "spotprice is lower"})
    if (said.find(word) != std::string::npos) error.kind = ErrorKind::capacity;
  return error;
}

// Deletes the servers of a failed create and waits until they are gone. Fails with kind network if one may still exist.
Async<> Ecs::clear(std::vector<std::string> ids, CancelToken token) {
  for (const std::string& id : ids) {
    Result<> done = co_await remove(id, token);
    if (!done && done.error().http_status == 404) continue;
    cloud::Patience patience(loop_, remove_patience_ms);
    while (done) {
      const Result<Server> left = co_await describe(id, token);
      if (!left && left.error().http_status == 404) break;
      if (left && left->status == "DELETED") break;
      done = co_await patience.next("the deletion of " + id, token);
    }
    if (!done) {
      Error e = done.error();
      if (e.kind != ErrorKind::cancelled) e.kind = ErrorKind::network;
      e.message = "a server that could not be made is perhaps still there: " + e.message;
      co_return e;
    }
  }
  co_return success();
}

Async<std::string> Ecs::create(Value server, std::string client_token, std::int64_t send_by_wall_us,
                               CancelToken token) {
  Value asked;
  asked.set("server", std::move(server));
  net::Query none;
  const Result<Value> answer = co_await call("POST", "ecs/v1/{project}/cloudservers", std::move(none), std::move(asked),
                                             Effect::lasting.by(send_by_wall_us), token, std::move(client_token));
  if (!answer) co_return refused(answer.error());
  if (answer->text("job_id").empty()) co_return net::not_theirs("huawei", "createServer");
  const Result<Value> ended = co_await finished(answer->text("job_id"), create_patience_ms, token);
  if (!ended) co_return left_open(ended.error());
  const Value& told = *ended;
  std::vector<std::string> ids;
  for (const Value& id : list_of((*answer)["serverIds"]))
    if (id.as_string()) ids.push_back(*id.as_string());
  Value failure = told;  // replaced by the failed sub-job, which has the details
  for (const Value& part : list_of(told["entities"]["sub_jobs"])) {
    const std::string id = part["entities"].text("server_id");
    if (!id.empty() && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    if (part.text("status") == "FAIL" && !part.text("error_code").empty()) failure = part;
  }
  if (told.text("status") == "FAIL") {
    RILLE_CO_CHECK(co_await clear(std::move(ids), token));
    co_return refused(api_.failed_later("job createServer", failure.text("error_code"), failure.text("fail_reason")));
  }
  if (ids.empty())
    co_return make_error(ErrorKind::network,
                         "huawei: createServer: the finished job names no server: " + told.to_json(),
                         "Rille looks for the machine by its tag; if there is none, rent again");
  co_return ids.front();
}

Async<Server> Ecs::describe(std::string id, CancelToken token) {
  net::Query none;
  RILLE_CO_TRY(const Value answer, co_await call("GET", "ecs/v1/{project}/cloudservers/" + id, std::move(none), Value(),
                                                 Effect::none, token));
  if (answer["server"].text("id") != id) co_return net::not_theirs("huawei", "showServer");
  co_return read_server(answer["server"]);
}

Async<std::vector<Server>> Ecs::list(CancelToken token) {
  std::vector<Server> out;
  std::int64_t seen = 0;
  for (int page = 1; page <= pages_max; ++page) {  // this API's `offset` is a page number
    net::Query query{{"limit", std::to_string(page_rows)}, {"offset", std::to_string(page)}};
    RILLE_CO_TRY(const Value answer, co_await call("GET", "ecs/v1/{project}/cloudservers/detail", std::move(query),
                                                   Value(), Effect::none, token));
    if (!answer["servers"].as_array()) co_return net::not_theirs("huawei", "the list of servers");
    const Value::Array rows = *answer["servers"].as_array();
    for (const Value& v : rows) {
      Server one = read_server(v);
      if (!one.tag.empty()) out.push_back(std::move(one));
    }
    seen += static_cast<std::int64_t>(rows.size());
    if (rows.empty() || seen >= answer.integer("count")) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Huawei's list of the account's servers has more than {} pages, which is the most that Rille reads",
                  pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

// delete_volume is about data disks, which are volumes; the system disk ends with its server in any case.
Async<> Ecs::remove(std::string id, CancelToken token) {
  Value asked;
  asked.set("servers", Value::Array{Value().set("id", id)}).set("delete_publicip", true).set("delete_volume", false);
  net::Query none;
  auto answer = co_await call("POST", "ecs/v1/{project}/cloudservers/delete", std::move(none), std::move(asked),
                              Effect::none, token);
  if (!answer) co_return answer.error();
  if (answer->text("job_id").empty()) co_return net::not_theirs("huawei", "deleteServers");
  co_return success();
}

Async<> Ecs::resize(std::string id, std::string flavor, CancelToken token) {
  Value how, asked;
  how.set("flavorRef", std::move(flavor)).set("mode", "withStopServer");
  asked.set("resize", std::move(how));
  net::Query none;
  const Result<Value> answer = co_await call("POST", "ecs/v1/{project}/cloudservers/" + id + "/resize", std::move(none),
                                             std::move(asked), Effect::lasting, token);
  if (!answer) co_return refused(answer.error());
  if (answer->text("job_id").empty()) co_return net::not_theirs("huawei", "resizeServer");
  const Result<Value> told = co_await finished(answer->text("job_id"), resize_patience_ms, token);
  if (!told) co_return left_open(told.error());
  if (told->text("status") == "SUCCESS") co_return success();
  co_return refused(api_.failed_later("job resizeServer", told->text("error_code"), told->text("fail_reason")));
}

}  // namespace rille::provider::huawei
