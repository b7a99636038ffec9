// The files of a run's metrics, and what is read of them.
#include "runtime/workflow/engine/metrics.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/core/base/id.hpp"

using namespace rille;
using namespace rille::engine;

namespace {

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / ("rille-metrics-" + random_hex(6))).string();
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string line(const char* name, double value, std::int64_t at_us, std::optional<double> step = {}, int gpu = -1) {
  agent::Metric m;
  m.name = name, m.value = value, m.at_us = at_us, m.step = step, m.gpu = gpu;
  return agent::metric_line(m);
}

MetricSource of_call(std::int64_t generation) {
  MetricSource s;
  s.key = "main/train#1", s.lease = "trainer", s.generation = generation;
  return s;
}

}  // namespace

TEST_CASE("a run without metrics has none", "[metric]") {
  Folder home;
  CHECK(read_metrics(home.path)->empty());
  CHECK_FALSE(MetricFile::exists(home.path, MetricFile::script_name()));
}

TEST_CASE("a training that restarts repeats steps: the last of each counts, over machines too", "[metric]") {
  Folder home;
  auto one = MetricFile::open(home.path, MetricFile::call_name("c-1", 1), of_call(1)).value();
  for (int step = 1; step <= 8; ++step) REQUIRE(one.append(line("loss", 100 + step, step, step)));
  auto two = MetricFile::open(home.path, MetricFile::call_name("c-1", 2), of_call(2)).value();
  for (int step = 5; step <= 10; ++step) REQUIRE(two.append(line("loss", 200 + step, 20 + step, step)));
  REQUIRE(two.append(line("gpu_utilization", 90, 30, {}, 3)));
  REQUIRE(one.append(line("gpu_utilization", 80, 3, {}, 3)));
  const auto all = read_metrics(home.path).value();
  REQUIRE(all.size() == 3);
  CHECK(all[0].source == "trainer 1 gpu 3");
  CHECK(all[1].source == "trainer 2 gpu 3");
  CHECK(all[1].of_machine);
  CHECK(all[2].source == "main/train#1");
  CHECK_FALSE(all[2].of_machine);
  std::vector<double> losses;
  for (const auto& m : all[2].points) losses.push_back(m.value);
  CHECK(losses == std::vector<double>{101, 102, 103, 104, 205, 206, 207, 208, 209, 210});
}

TEST_CASE("a script's points without steps are in the order of time, and its names are its own", "[metric]") {
  Folder home;
  auto file = MetricFile::open(home.path, MetricFile::script_name(), MetricSource()).value();
  REQUIRE(file.append(line("a", 2, 20) + line("a", 1, 10) + line("a", 3, 30) + line("gpu_utilization", 4, 40)));
  const auto all = read_metrics(home.path).value();
  REQUIRE(all.size() == 2);
  CHECK(all[0].points.front().value == 1);
  CHECK(all[0].points.size() == 3);
  CHECK(all[1].source == "script");
  CHECK_FALSE(all[1].of_machine);
}

TEST_CASE("a file that a power cut left goes on after its last whole line", "[metric]") {
  Folder home;
  const std::string name = MetricFile::call_name("c-1", 1), path = home.path + "/metrics/" + name + ".jsonl";
  std::int64_t size = 0;
  {
    auto file = MetricFile::open(home.path, name, of_call(1)).value();
    CHECK(file.size_bytes() == 0);
    REQUIRE(file.append(line("loss", 1, 1, 1)));
    size = file.size_bytes();
  }
  std::ofstream(path, std::ios::app) << "{\"at_us\":2,\"na";
  CHECK(read_metrics(home.path)->front().points.size() == 1);
  auto file = MetricFile::open(home.path, name, of_call(1)).value();
  CHECK(file.size_bytes() == size);
  REQUIRE(file.append(line("loss", 2, 2, 2)));
  CHECK(read_metrics(home.path)->front().points.size() == 2);
}

TEST_CASE("a damaged line is an error that names file and line", "[metric]") {
  Folder home;
  auto file = MetricFile::open(home.path, MetricFile::script_name(), MetricSource()).value();
  REQUIRE(file.append(line("a", 1, 1)));
  std::ofstream(home.path + "/metrics/script.jsonl", std::ios::app) << "{}\n";
  const auto all = read_metrics(home.path);
  REQUIRE_FALSE(all.ok());
  CHECK(all.error().kind == ErrorKind::integrity);
  CHECK(all.error().message.find("script.jsonl' is damaged: line 3") != std::string::npos);
}

TEST_CASE("metrics end at their limit", "[metric]") {
  Folder home;
  auto file = MetricFile::open(home.path, MetricFile::script_name(), MetricSource()).value();
  std::string lines;
  while (lines.size() < (1 << 20)) lines += line("a", 1, 1);
  for (int i = 0; i < 70; ++i) REQUIRE(file.append(lines));
  CHECK(file.size_bytes() <= agent::metrics_bytes_max);
  CHECK(file.size_bytes() > agent::metrics_bytes_max - (2 << 20));
}
