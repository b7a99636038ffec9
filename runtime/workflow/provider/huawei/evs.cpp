// Lists and deletes disks that outlived their servers or were made by a failed job.
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

}  // namespace

Async<std::vector<std::pair<std::string, std::string>>> Ecs::loose_disks(CancelToken token) {
  std::vector<std::pair<std::string, std::string>> out;
  std::int64_t seen = 0;
  for (int page = 0; page < disk_pages_max; ++page) {  // this API's `offset` is a number of disks
    net::Query query{{"status", "available"}, {"limit", std::to_string(page_disks)}, {"offset", std::to_string(seen)}};
    RILLE_CO_TRY(const Value answer, co_await call("GET", "evs/v2/{project}/cloudvolumes/detail", std::move(query),
                                                   Value(), Effect::none, token));
    if (!answer["volumes"].as_array()) co_return net::not_theirs("huawei", "the list of disks");
    const Value::Array rows = *answer["volumes"].as_array();
    for (const Value& v : rows) {
      std::string tag = tag_of(v);
      if (!tag.empty() && net::list_of(v["attachments"]).empty()) out.emplace_back(v.text("id"), std::move(tag));
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

Async<> Ecs::remove_disk(std::string id, CancelToken token) {
  net::Query none;
  auto answer = co_await call("DELETE", "evs/v2/{project}/cloudvolumes/" + id, std::move(none), Value(), Effect::none,
                              std::move(token));
  if (!answer && answer.error().http_status != 404) co_return answer.error();
  co_return success();
}

}  // namespace rille::provider::huawei
