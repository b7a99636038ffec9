#include "runtime/compute/data/dataset.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/core/store/file.hpp"

namespace rille::data {

namespace {

namespace fs = std::filesystem;

constexpr int dataset_format = 1;
constexpr std::int64_t description_bytes_max = 64 << 20;

Error damaged(const std::string& path, const std::string& what) {
  return make_error(ErrorKind::integrity, fmt::format("'{}' is damaged: {}", path, what),
                    "copy the data set again, or remove the folder and build it again");
}

// Whether the name stays inside the folder.
bool is_inside(const std::string& path) {
  if (path.empty() || path.front() == '/') return false;
  for (const auto& step : fs::path(path))
    if (step == ".." || step == ".") return false;
  return true;
}

Result<Shard> shard_of(const Value& v, const std::string& file) {
  Shard shard{v.text("path"),
              v.text("part"),
              {v.integer("size_bytes", -1), v.text("xxh3"), v.text("sha256")},
              v.integer("count", -1)};
  if (!is_inside(shard.path)) return damaged(file, fmt::format("a shard's name is '{}'", shard.path));
  if (shard.print.size_bytes < 0 || shard.count < 0)
    return damaged(file, fmt::format("shard '{}' has no size", shard.path));
  return shard;
}

}  // namespace

Value Dataset::to_value() const {
  Value::Array list;
  for (const Shard& s : shards) {
    Value v;
    v.set("path", s.path).set("part", s.part).set("size_bytes", s.print.size_bytes).set("count", s.count);
    v.set("xxh3", s.print.xxh3).set("sha256", s.print.sha256);
    list.push_back(std::move(v));
  }
  Value out = facts;
  out.set("format", dataset_format).set("kind", kind).set("identity", identity);
  out.set("options", options).set("sources", sources).set("shards", std::move(list));
  return out;
}

Result<std::optional<Dataset>> read_dataset(const std::string& folder, const char* name, const Room& room) {
  constexpr std::int64_t bytes_max = description_bytes_max,
                         bytes_of_byte = 24;  // parsed JSON takes many times its text
  const std::string path = folder + "/" + name;
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  if (failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory)
    return std::optional<Dataset>();
  if (!failed && room)
    RILLE_CHECK(room(std::min<std::int64_t>(static_cast<std::int64_t>(size), bytes_max) * bytes_of_byte));
  RILLE_TRY(const std::string text, store::read_file(path, bytes_max));
  Result<Value> all = Value::from_json(text);
  if (!all || !all->as_object()) return damaged(path, all ? "it is no object" : all.error().message);
  if (all->integer("format") != dataset_format)
    return make_error(
        ErrorKind::state,
        fmt::format("'{}' has the format {}; this Rille knows {}", path, all->integer("format"), dataset_format),
        "read it with the Rille that wrote it, or build the data set again");
  Dataset out{all->text("kind"), all->text("identity"), (*all)["options"], (*all)["sources"], {}, {}, 0, {}};
  if (!(*all)["shards"].as_array()) return damaged(path, "it has no list of shards");
  for (const Value& v : *(*all)["shards"].as_array()) {
    RILLE_TRY(Shard shard, shard_of(v, path));
    out.shards.push_back(std::move(shard));
  }
  for (const char* known : {"format", "kind", "identity", "options", "sources", "shards"})
    all->as_object()->erase(known);
  out.facts = std::move(*all);
  return std::optional<Dataset>(std::move(out));
}

Result<> write_dataset(const std::string& folder, const char* name, const Dataset& dataset, const Room& disk) {
  const std::string text = dataset.to_value().to_json_pretty() + "\n";
  if (static_cast<std::int64_t>(text.size()) > description_bytes_max)
    return make_error(ErrorKind::invalid,
                      fmt::format("the description of the data set in '{}' would have {} bytes, the limit is {}",
                                  folder, text.size(), description_bytes_max),
                      "make a data set of fewer sources, shards, classes or categories");
  if (disk) RILLE_CHECK(disk(static_cast<std::int64_t>(text.size())));
  return store::write_file_atomic(folder + "/" + name, text);
}

Result<> check_shards(const std::string& folder, const Dataset& dataset) {
  for (const Shard& shard : dataset.shards) {
    const std::string path = folder + "/" + shard.path;
    std::error_code failed;
    const auto size = fs::file_size(path, failed);
    if (failed) return damaged(folder, fmt::format("its shard '{}' is missing", shard.path));
    if (static_cast<std::int64_t>(size) != shard.print.size_bytes)
      return damaged(
          path, fmt::format("{} says that it has {} bytes, and it has {}", dataset_name, shard.print.size_bytes, size));
  }
  return success();
}

Result<std::optional<Dataset>> open_dataset(const std::string& folder, const std::string& kind, const Room& room) {
  RILLE_TRY(auto found, read_dataset(folder, dataset_name, room));
  std::error_code failed;
  if (!found && fs::exists(folder + "/" + progress_name, failed))
    return make_error(ErrorKind::state, fmt::format("the data set in '{}' is not finished", folder),
                      "run the same `rille data build` again: it goes on where it stopped");
  if (!found) return std::optional<Dataset>();
  if (found->kind != kind)
    return make_error(ErrorKind::state,
                      fmt::format("'{}' is a data set of kind '{}', not '{}'", folder, found->kind, kind),
                      "rille.data.tokens reads data sets of text, rille.data.arrays those of tables, "
                      "rille.data.images those of images");
  RILLE_CHECK(check_shards(folder, *found));
  return found;
}

}  // namespace rille::data
