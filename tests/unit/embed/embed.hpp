// A runtime of rille.h in a folder of its own, and short ways to prepare, start and end runs.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <string>

#include "bindings/c/rille.h"

namespace rille::test {

inline std::string take_text(rille_error* error) {
  if (!error) return {};
  std::string text = rille_error_to_json(error);
  rille_error_free(error);
  return text;
}

#define OK(call) REQUIRE(rille::test::take_text(call).empty())
#define REFUSED(call, words) REQUIRE_THAT(rille::test::take_text(call), Catch::Contains(words))

struct Embedded {  // home_: "" for a new folder
  explicit Embedded(std::string home_ = "") : home(std::move(home_)) {
    static int next = 0;
    own = home.empty();
    const std::string name = "rille-embed-" + std::to_string(getpid()) + "-" + std::to_string(++next);
    if (own) home = std::filesystem::temp_directory_path() / name;
    rille_options options;
    rille_options_init(&options, sizeof options);
    options.home = home.c_str();
    OK(rille_create(&options, &rt));
  }
  ~Embedded() {
    if (rt) rille_destroy(rt);
    if (own) std::filesystem::remove_all(home);
  }
  Embedded(const Embedded&) = delete;

  rille_run* prepare(const std::string& source, const rille_run_options* options = nullptr) {
    rille_run* run = nullptr;
    OK(rille_run_from_source(rt, "test.lua", source.data(), source.size(), options, &run));
    return run;
  }
  rille_run* start(const std::string& source, const rille_run_options* options = nullptr) {
    rille_run* run = prepare(source, options);
    OK(rille_run_start(run));
    return run;
  }
  rille_run* start_open(const std::string& source) {
    rille_run_options options;
    rille_run_options_init(&options, sizeof options);
    options.rules = RILLE_RULES_OPEN;
    return start(source, &options);
  }
  static std::string result(rille_run* run) {
    if (const rille_error* error = rille_run_error(run)) return rille_error_to_json(error);
    const char* text = rille_run_result(run, nullptr);
    return text ? text : "";
  }
  // Turns with this budget until the run has ended; returns the number of turns.
  int turn_to_end(rille_run* run, int budget_ms) {
    int turns = 0;
    for (; rille_run_state(run) == RILLE_RUN_RUNNING; ++turns) OK(rille_turn(rt, budget_ms, nullptr));
    return turns;
  }

  std::string home;
  bool own = true;
  rille_runtime* rt = nullptr;
};

}  // namespace rille::test
