// version_of: whether a page would look the same, without making it.
#include <fmt/format.h>

#include <filesystem>

#include "bindings/cli/runs.hpp"
#include "bindings/cli/serve/site.hpp"
#include "runtime/core/base/id.hpp"

namespace rille::cli {

namespace {

constexpr std::int64_t tick_us = 5'000'000;

// Names and sizes of the run's log and of the files of its metrics.
std::string sizes_of(const std::string& folder) {
  std::string out;
  std::error_code none;
  const auto add = [&](const std::filesystem::path& path) {
    const std::uintmax_t bytes = std::filesystem::file_size(path, none);
    if (!none) out += fmt::format("{} {}\n", path.string(), bytes);
  };
  add(folder + "/log");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/metrics", none))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) add(path);
  return out;
}

bool goes_on(const std::string& state) { return state == "running" || state == "cleanup"; }

}  // namespace

Result<std::string> version_of(const App& app, const std::vector<engine::RunRow>& runs) {
  const bool list = runs.empty();
  std::string all;
  RILLE_CHECK(app.engine->journal().reader().query(
      "PRAGMA data_version", {}, [&](const store::Row& row) { all = fmt::format("{}\n", row.integer(0)); }));
  std::vector<engine::RunRow> watched = runs;
  if (list) { RILLE_TRY(watched, app.engine->runs(200)); }
  RILLE_TRY(const std::vector<lease::Lease> rented, app.engine->leases().all(false));
  bool moves = list && !rented.empty();
  for (const engine::RunRow& run : watched) {
    const std::string state = shown_state(app, run);  // a process that is killed writes nothing
    moves = moves || goes_on(state);
    for (const lease::Lease& l : rented) moves = moves || l.run == run.id;
    if (list && run.state != "running") continue;
    all += fmt::format("{} {}\n", run.id, state);
    if (!list) all += sizes_of(app.engine->home() + "/runs/" + run.id);
  }
  if (moves) all += fmt::format("{}", app.loop->clock().wall_us() / tick_us);
  return "\"" + sha256_hex(all).substr(0, 32) + "\"";
}

}  // namespace rille::cli
