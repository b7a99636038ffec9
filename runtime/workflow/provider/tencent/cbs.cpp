#include "runtime/workflow/provider/tencent/cbs.hpp"

#include <fmt/format.h>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/workflow/provider/tencent/cvm.hpp"

namespace rille::provider::tencent {

namespace {

using net::Effect;
using net::list_of;

constexpr int disk_page_rows = 100, disk_rows_max = 20'000;

std::string disk_tag(const Value& v, const char* key) {
  for (const Value& tag : list_of(v["Tags"]))
    if (tag.text("Key") == key) return tag.text("Value");
  return "";
}

Disk read_disk(const Value& v) {
  Disk out;
  out.id = v.text("DiskId");
  out.tag = disk_tag(v, tag_key);
  out.state = v.text("DiskState");
  out.zone = v["Placement"].text("Zone");
  out.machine = v.text("InstanceId");
  // Without its tags it may still be a volume, whose data must not count as gone.
  out.is_volume = out.tag.empty() || !disk_tag(v, volume_key).empty();
  return out;
}

}  // namespace

Cbs::Cbs(Loop& loop, net::CredentialChain& keys, const std::string& region, const Value& endpoints)
    : url_(endpoints.text("cbs", "https://cbs.tencentcloudapi.com")),
      api_(loop, api_options("cbs", "2017-03-12", region), keys) {}

Async<Value> Cbs::call(std::string action, Value request, Effect effect, CancelToken token) {
  net::Parts parts = parts_for(url_, action, to_plain_json(request));
  co_return co_await api_.call(std::move(action), std::move(parts), effect, std::move(token));
}

Async<std::vector<Disk>> Cbs::disk_rows(const char* filter, std::string value, CancelToken token) {
  const Value filters(Value::Array{Value().set("Name", filter).set("Values", Value::Array{Value(std::move(value))})});
  std::vector<Disk> out;
  for (std::int64_t offset = 0; offset < disk_rows_max;) {
    Value asked;
    asked.set("Filters", filters).set("Offset", offset).set("Limit", disk_page_rows);
    RILLE_CO_TRY(const Value answer, co_await call("DescribeDisks", std::move(asked), Effect::none, token));
    const Value::Array rows = list_of(answer["DiskSet"]);
    const bool counted = answer["TotalCount"].as_number();
    if (!counted || (rows.empty() && offset < answer.integer("TotalCount")))
      co_return net::not_theirs("tencent", "DescribeDisks");
    for (const Value& v : rows) out.push_back(read_disk(v));
    offset += static_cast<std::int64_t>(rows.size());
    if (rows.empty() || offset >= answer.integer("TotalCount")) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Tencent's answer to DescribeDisks has more than {} rows, which is the most that Rille reads",
                  disk_rows_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<std::vector<Disk>> Cbs::disks(CancelToken token) { return disk_rows("tag-key", tag_key, std::move(token)); }

Async<std::vector<Disk>> Cbs::disks_of(std::string instance, CancelToken token) {
  return disk_rows("instance-id", std::move(instance), std::move(token));
}

Async<std::optional<Disk>> Cbs::disk(std::string id, CancelToken token) {
  RILLE_CO_TRY(const std::vector<Disk> rows, co_await disk_rows("disk-id", id, std::move(token)));
  std::optional<Disk> out;
  for (const Disk& disk : rows)
    if (disk.id == id) out = disk;
  co_return out;
}

Async<std::string> Cbs::create(Value request, std::int64_t send_by_wall_us, CancelToken token) {
  RILLE_CO_TRY(const Value answer,
               co_await call("CreateDisks", std::move(request), Effect::lasting.by(send_by_wall_us), token));
  const Value::Array ids = list_of(answer["DiskIdSet"]);
  if (ids.empty() || !ids[0].as_string()) co_return net::not_theirs("tencent", "CreateDisks");
  co_return *ids[0].as_string();
}

Async<> Cbs::attach(std::string disk, std::string instance, CancelToken token) {
  Value asked;
  asked.set("DiskIds", Value::Array{Value(disk)}).set("InstanceId", instance);
  RILLE_CO_CHECK(co_await call("AttachDisks", std::move(asked), Effect::none, token));
  co_return success();
}

Async<> Cbs::remove(std::string disk, CancelToken token) {
  Value asked;
  asked.set("DiskIds", Value::Array{Value(disk)});
  auto answer = co_await call("TerminateDisks", std::move(asked), Effect::none, std::move(token));
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

Async<Micros> Cbs::price(std::string kind, std::int64_t size_gb, CancelToken token) {
  Value asked;
  asked.set("DiskChargeType", by_use).set("DiskType", kind).set("DiskSize", size_gb).set("DiskCount", 1);
  RILLE_CO_TRY(const Value answer, co_await call("InquiryPriceCreateDisks", std::move(asked), Effect::none, token));
  co_return hourly_of(answer["DiskPrice"]);
}

}  // namespace rille::provider::tencent
