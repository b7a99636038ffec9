// The disks: volumes, and those that outlived their servers or were made by a failed job.
#include <fmt/format.h>

#include "runtime/workflow/provider/huawei/ecs.hpp"

namespace rille::provider::huawei {

namespace {

using net::Effect;

constexpr int page_disks = 100, disk_pages_max = 200;

// The tag of a disk's server. Huawei does not copy a server's tags to its disks (`server_tags` in Huawei's SDK), but
// names them SERVER-volume-0000 (observed, not documented), and Rille uses the tag as the server's name.
std::string tag_of(const Value& v) {
  const std::string tag = v["tags"].text(tag_key), name = v.text("name");
  if (!tag.empty()) return full_tag(tag);
  const std::size_t end = name.rfind("-volume-");
  return name.starts_with("rille-") && end != std::string::npos ? name.substr(0, end) : "";
}

Disk read_disk(const Value& v) {
  Disk out;
  out.id = v.text("id");
  out.tag = tag_of(v);
  out.status = v.text("status");
  out.zone = v.text("availability_zone");
  out.attached = !net::list_of(v["attachments"]).empty();
  out.is_volume = !v["tags"].text(volume_key).empty();
  return out;
}

}  // namespace

Async<std::vector<Disk>> Ecs::disks(CancelToken token) {
  std::vector<Disk> out;
  std::int64_t seen = 0;
  for (int page = 0; page < disk_pages_max; ++page) {  // this API's `offset` is a number of disks
    net::Query query{{"limit", std::to_string(page_disks)}, {"offset", std::to_string(seen)}};
    RILLE_CO_TRY(const Value answer, co_await call("GET", "evs/v2/{project}/cloudvolumes/detail", std::move(query),
                                                   Value(), Effect::none, token));
    if (!answer["volumes"].as_array()) co_return net::not_theirs("huawei", "the list of disks");
    const Value::Array rows = *answer["volumes"].as_array();
    for (const Value& v : rows) {
      Disk disk = read_disk(v);
      if (!disk.tag.empty()) out.push_back(std::move(disk));
    }
    seen += static_cast<std::int64_t>(rows.size());
    if (rows.empty() || seen >= answer.integer("count")) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Huawei's list of the account's disks has more than {} pages, which is the most that Rille reads",
                  disk_pages_max),
      "run it again; if it stays, report it as a bug of Rille");
}

// By the list, which needs no permission beyond those of a release.
Async<std::optional<Disk>> Ecs::disk(std::string id, CancelToken token) {
  net::Query query{{"id", id}};
  RILLE_CO_TRY(const Value answer, co_await call("GET", "evs/v2/{project}/cloudvolumes/detail", std::move(query),
                                                 Value(), Effect::none, std::move(token)));
  if (!answer["volumes"].as_array()) co_return net::not_theirs("huawei", "the list of disks");
  std::optional<Disk> out;
  for (const Value& v : *answer["volumes"].as_array())
    if (v.text("id") == id) out = read_disk(v);
  // Without its tags it may still be a volume, whose data must not count as gone.
  if (out) out->is_volume = out->is_volume || out->tag.empty();
  co_return out;
}

Async<std::string> Ecs::create_disk(Value disk, std::string client_token, std::int64_t send_by_wall_us,
                                    CancelToken token) {
  Value asked;
  asked.set("volume", std::move(disk));
  net::Query none;
  RILLE_CO_TRY(const Value answer,
               co_await call("POST", "evs/v2.1/{project}/cloudvolumes", std::move(none), std::move(asked),
                             Effect::lasting.by(send_by_wall_us), token, std::move(client_token)));
  const Value::Array ids = net::list_of(answer["volume_ids"]);
  if (ids.empty() || !ids[0].as_string()) co_return net::not_theirs("huawei", "CreateVolume");
  co_return *ids[0].as_string();
}

// Begins a job of Huawei, which the caller need not wait for: the server shows the disk once it is attached.
Async<> Ecs::attach(std::string disk, std::string server, CancelToken token) {
  Value asked;
  asked.set("volumeAttachment", Value().set("volumeId", std::move(disk)));
  net::Query none;
  RILLE_CO_CHECK(co_await call("POST", "ecs/v1/{project}/cloudservers/" + server + "/attachvolume", std::move(none),
                               std::move(asked), Effect::none, token));
  co_return success();
}

Async<cloud::Price> Ecs::disk_price(std::string kind, std::int64_t size_gb, std::string zone, CancelToken token) {
  RILLE_CO_TRY(const std::string id, co_await project(token));
  Value product;
  product.set("id", "1").set("cloud_service_type", "hws.service.type.ebs");
  product.set("resource_type", "hws.resource.type.volume").set("region", region_).set("available_zone", zone);
  product.set("resource_spec", kind).set("resource_size", size_gb).set("size_measure_id", 17);  // 17: GB
  product.set("subscription_num", 1);
  product.set("usage_factor", "Duration").set("usage_value", 1).set("usage_measure_id", 4);  // 4: hours
  Value asked;
  asked.set("project_id", id).set("inquiry_precision", 1).set("product_infos", Value::Array{std::move(product)});
  net::Query none;
  RILLE_CO_TRY(const Value answer, co_await call("POST", "bss/v2/bills/ratings/on-demand-resources", std::move(none),
                                                 std::move(asked), Effect::none, token));
  cloud::Price out;
  out.currency = answer.text("currency", "CNY");
  out.micros_per_hour = cloud::micros_of(answer.number("amount", -1));
  co_return out;
}

Async<> Ecs::remove_disk(std::string id, CancelToken token) {
  net::Query none;
  auto answer = co_await call("DELETE", "evs/v2/{project}/cloudvolumes/" + id, std::move(none), Value(), Effect::none,
                              std::move(token));
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

}  // namespace rille::provider::huawei
