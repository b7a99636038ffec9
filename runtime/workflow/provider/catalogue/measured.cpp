#include "runtime/workflow/provider/catalogue/measured.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <tuple>

#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::provider {

namespace {

constexpr std::size_t rows_max = 2000;  // beyond this, the oldest rows are dropped
constexpr std::int64_t file_bytes_max = 16 << 20;

std::string path_of(const std::string& home) { return home + "/measured.json"; }

auto kind_of(const Measurement& m) {
  return std::tie(m.workload, m.unit, m.precision, m.provider, m.offer, m.gpu, m.gpu_memory_bytes, m.gpu_count,
                  m.batch);
}

Error damaged(const std::string& why) {
  return make_error(ErrorKind::integrity, fmt::format("a measurement {}", why),
                    "measured.json in the home of Rille is damaged: move it away, and measurements start again");
}

// Waits for the file's lock and takes it; closing the returned descriptor releases the lock.
Result<store::Fd> lock(const std::string& path) {
  store::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error("open", path, errno);
  while (flock(file.get(), LOCK_EX) < 0)
    if (errno != EINTR) return errno_error("lock", path, errno);
  return file;
}

}  // namespace

double Measurement::per_dollar() const {
  if (price_micros_per_hour <= 0) return 0;
  return per_second * std::max(1, gpu_count) * 3600 / (static_cast<double>(price_micros_per_hour) / 1e6);
}

Value Measurement::to_value() const {
  Value v;
  v.set("workload", workload).set("unit", unit).set("per_second", per_second).set("steps", steps).set("batch", batch);
  v.set("provider", provider).set("offer", offer).set("region", region).set("spot", spot);
  v.set("gpu", gpu).set("gpu_count", gpu_count).set("gpu_memory_bytes", gpu_memory_bytes);
  v.set("run", run).set("measured_at", format_utc(at_us));
  if (!precision.empty()) v.set("precision", precision);
  if (params > 0) v.set("params", params);
  if (price_micros_per_hour >= 0) v.set("price_per_hour", static_cast<double>(price_micros_per_hour) / 1e6);
  if (per_dollar() > 0) v.set("per_dollar", per_dollar());
  return v;
}

Result<Measurement> Measurement::from_value(const Value& v) {
  Measurement m;
  m.workload = v.text("workload"), m.unit = v.text("unit"), m.precision = v.text("precision"), m.run = v.text("run");
  m.provider = v.text("provider"), m.offer = v.text("offer"), m.region = v.text("region"), m.gpu = v.text("gpu");
  m.gpu_count = static_cast<int>(std::clamp<std::int64_t>(v.integer("gpu_count"), 0, 4096));
  m.gpu_memory_bytes = v.integer("gpu_memory_bytes");
  m.spot = v.boolean("spot");
  m.per_second = v.number("per_second"), m.batch = v.number("batch");
  m.steps = v.integer("steps"), m.params = v.integer("params");
  if (m.workload.empty()) return damaged("has no workload");
  if (!std::isfinite(m.per_second) || m.per_second <= 0) return damaged("of " + m.workload + " has no rate");
  if (v["price_per_hour"].as_number()) {
    RILLE_TRY(m.price_micros_per_hour, micros_from_dollars(v.number("price_per_hour")));
  }
  Result<std::int64_t> at = parse_utc(v.text("measured_at"));
  if (!at) return damaged("of " + m.workload + " has no time");
  m.at_us = *at;
  return m;
}

Result<std::vector<Measurement>> measurements(const std::string& home) {
  std::vector<Measurement> out;
  const std::string path = path_of(home);
  if (access(path.c_str(), F_OK) != 0) return out;
  RILLE_TRY(const std::string text, store::read_file(path, file_bytes_max));
  const auto foreign = [&path](const std::string& why) {
    return make_error(ErrorKind::integrity, fmt::format("{}: {}", path, why),
                      "move the file away: measurements then start again");
  };
  const Result<Value> file = Value::from_json(text);
  if (!file) return foreign(file.error().message);
  const Value& rows = (*file)["measured"];
  if (!rows.as_array()) return foreign("there is no list of measurements in it");
  for (const Value& row : *rows.as_array()) {
    Result<Measurement> m = Measurement::from_value(row);
    if (!m) return foreign(m.error().message);
    out.push_back(std::move(*m));
  }
  const auto newer = [](const Measurement& a, const Measurement& b) { return a.at_us > b.at_us; };
  std::stable_sort(out.begin(), out.end(), newer);
  return out;
}

Result<> keep(const std::string& home, const Measurement& measurement) {
  RILLE_CHECK(store::make_directories(home));
  const std::string path = path_of(home);
  RILLE_TRY(const store::Fd held, lock(path + ".lock"));
  RILLE_TRY(std::vector<Measurement> all, measurements(home));
  std::erase_if(all, [&](const Measurement& old) { return kind_of(old) == kind_of(measurement); });
  all.insert(all.begin(), measurement);
  if (all.size() > rows_max) all.resize(rows_max);
  Value::Array rows;
  for (const Measurement& m : all) rows.push_back(m.to_value());
  return store::write_file_atomic(path, Value().set("measured", std::move(rows)).to_json_pretty() + "\n", 0600);
}

}  // namespace rille::provider
