#include "runtime/workflow/provider/tencent/cbs.hpp"

#include <fmt/format.h>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/workflow/provider/tencent/cvm.hpp"

namespace rille::provider::tencent {

namespace {

using net::Effect;
using net::list_of;

constexpr int disk_page_rows = 100, disk_rows_max = 20'000;

Value filter(const char* name, const char* value) {
  return Value().set("Name", name).set("Values", Value::Array{Value(value)});
}

}  // namespace

Cbs::Cbs(Loop& loop, net::CredentialChain& keys, const std::string& region, const Value& endpoints)
    : url_(endpoints.text("cbs", "https://cbs.tencentcloudapi.com")),
      api_(loop, api_options("cbs", "2017-03-12", region), keys) {}

Async<Value> Cbs::call(std::string action, Value request, CancelToken token) {
  net::Parts parts = parts_for(url_, action, to_plain_json(request));
  co_return co_await api_.call(std::move(action), std::move(parts), Effect::none, std::move(token));
}

Async<std::vector<std::pair<std::string, std::string>>> Cbs::loose_disks(CancelToken token) {
  const Value filters(Value::Array{filter("tag-key", tag_key), filter("disk-state", "UNATTACHED")});
  std::vector<std::pair<std::string, std::string>> out;
  for (std::int64_t offset = 0; offset < disk_rows_max;) {
    Value asked;
    asked.set("Filters", filters).set("Offset", offset).set("Limit", disk_page_rows);
    RILLE_CO_TRY(const Value answer, co_await call("DescribeDisks", std::move(asked), token));
    const Value::Array rows = list_of(answer["DiskSet"]);
    const bool counted = answer["TotalCount"].as_number();
    if (!counted || (rows.empty() && offset < answer.integer("TotalCount")))
      co_return net::not_theirs("tencent", "DescribeDisks");
    for (const Value& v : rows)
      for (const Value& tag : list_of(v["Tags"]))
        if (tag.text("Key") == tag_key) out.emplace_back(v.text("DiskId"), tag.text("Value"));
    offset += static_cast<std::int64_t>(rows.size());
    if (rows.empty() || offset >= answer.integer("TotalCount")) co_return out;
  }
  co_return make_error(
      ErrorKind::integrity,
      fmt::format("Tencent's answer to DescribeDisks has more than {} rows, which is the most that Rille reads",
                  disk_rows_max),
      "run it again; if it stays, report it as a bug of Rille");
}

Async<> Cbs::remove(std::string disk, CancelToken token) {
  Value asked;
  asked.set("DiskIds", Value::Array{Value(disk)});
  auto answer = co_await call("TerminateDisks", std::move(asked), std::move(token));
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

}  // namespace rille::provider::tencent
