// A fake provider (tests/contract/fakes) in a process of its own, and the driver that talks to it. $RILLE_FAKE names
// the provider; $RILLE_FAKE_FILE another fake of it, which $RILLE_FAKE_PYTHON runs. docs/design/fakes.md has the
// controls.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "runtime/core/base/id.hpp"
#include "runtime/core/loop/subprocess.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

inline std::string variable(const char* name, const std::string& otherwise) {
  const char* text = std::getenv(name);
  return text ? text : otherwise;
}
inline std::string fake_name() { return variable("RILLE_FAKE", "aws"); }

// What each driver has beyond what all must have: one that loses some of it must not pass by being skipped.
struct Has {
  bool tokens = false;             // a create's token is heeded by the cloud
  bool spot = false, cap = false;  // spot offers; a highest price for them
  bool notice = false;             // the machine is notified before it is taken away
  bool market = false;             // what it costs moves while it runs
  bool quotas = false, resize = false, history = false;
  bool policy = false;    // a document that restricts keys
  bool reserved = false;  // hourly prices of reservations for one and three years
  bool volumes = false;   // disks that outlive machines
};

inline const Has& has() {
  static const std::map<std::string, Has> all{{"aws",
                                               {.tokens = true,
                                                .spot = true,
                                                .cap = true,
                                                .notice = true,
                                                .market = true,
                                                .quotas = true,
                                                .resize = true,
                                                .history = true,
                                                .policy = true,
                                                .reserved = true,
                                                .volumes = true}},
                                              {"alibaba",
                                               {.tokens = true,
                                                .spot = true,
                                                .cap = true,
                                                .notice = true,
                                                .market = true,
                                                .quotas = true,
                                                .resize = true,
                                                .history = true,
                                                .policy = true,
                                                .reserved = true,
                                                .volumes = true}},
                                              {"tencent",
                                               {.spot = true,
                                                .cap = true,
                                                .notice = true,
                                                .market = true,
                                                .quotas = true,
                                                .resize = true,
                                                .policy = true,
                                                .reserved = true,
                                                .volumes = true}},
                                              {"huawei",
                                               {.spot = true,
                                                .cap = true,
                                                .notice = true,
                                                .market = true,
                                                .quotas = true,
                                                .resize = true,
                                                .policy = true,
                                                .reserved = true,
                                                .volumes = true}},
                                              {"gcp",
                                               {.tokens = true,
                                                .spot = true,
                                                .notice = true,
                                                .market = true,
                                                .quotas = true,
                                                .resize = true,
                                                .policy = true,
                                                .reserved = true,
                                                .volumes = true}},
                                              {"azure",
                                               {.tokens = true,
                                                .spot = true,
                                                .cap = true,
                                                .notice = true,
                                                .market = true,
                                                .quotas = true,
                                                .resize = true,
                                                .history = true,
                                                .policy = true,
                                                .reserved = true,
                                                .volumes = true}},
                                              {"runpod", {.spot = true, .cap = true, .volumes = true}},
                                              {"lambda", {}},
                                              {"vast", {.spot = true, .cap = true, .policy = true}},
                                              {"kubernetes", {.policy = true, .volumes = true}}};
  const auto mine = all.find(fake_name());
  INFO(fake_name() << " is missing in the table of what each has");
  REQUIRE(mine != all.end());
  return mine->second;
}

// What all fakes of this process have asked their callers to be allowed.
inline std::set<std::string>& needed_so_far() {
  static std::set<std::string> all;
  return all;
}

// The true time, which a test may turn on.
struct TurnedClock final : Clock {
  std::int64_t ahead_us = 0;
  std::int64_t wall_us() const override { return system_clock().wall_us() + ahead_us; }
  std::int64_t monotonic_ns() const override { return system_clock().monotonic_ns(); }
};

struct Fake {
  TurnedClock clock;
  std::unique_ptr<Loop> loop = Loop::create(clock).value();
  std::string root = std::filesystem::temp_directory_path() / ("rille-contract-" + random_hex(4));
  std::unique_ptr<Subprocess> process;
  Value told;  // the fake's first line
  std::unique_ptr<net::HttpClient> http;
  std::unique_ptr<Provider> provider;

  explicit Fake(std::vector<std::string> words = {}) {
    std::filesystem::create_directories(root);
    SubprocessOptions start;
    start.argv = {variable("RILLE_FAKE_PYTHON", "python3"), "-B",
                  std::string(RILLE_FAKES) + "/" + variable("RILLE_FAKE_FILE", fake_name()) + ".py"};
    start.argv.insert(start.argv.end(), words.begin(), words.end());
    start.in = start.out = SubprocessOptions::Output::stream;
    start.kill_on_drop = true;
    process = Subprocess::start(*loop, start).value();
    std::string line;
    char block[4096];
    while (line.find('\n') == std::string::npos) {
      const auto n = run_blocking(*loop, process->out()->read(block, sizeof block));
      REQUIRE(n);
      REQUIRE(*n > 0);
      line.append(block, *n);
    }
    told = Value::from_json(line).value();
    for (const auto& [name, value] : *told["env"].as_object()) setenv(name.c_str(), value.as_string()->c_str(), 1);
    setenv("HOME", root.c_str(), 1);  // a folder without credentials files
    http = std::make_unique<net::HttpClient>(*loop);
    provider = make();
  }
  ~Fake() {
    provider.reset();
    learn_needs();
    for (const auto& [name, value] : *told["env"].as_object()) unsetenv(name.c_str());
    std::filesystem::remove_all(root);
  }

  // Another one, as a second process would have it: nothing is remembered.
  std::unique_ptr<Provider> make(const std::vector<std::string>& without = {}) {
    Value settings = told["settings"];
    for (const std::string& name : without) settings.as_object()->erase(name);
    // What is named there (image, network) is of the zone's region.
    const std::string zone = settings.text("zone");
    for (const Value& region : settings["regions"].as_array() ? *settings["regions"].as_array() : Value::Array())
      if (zone.starts_with(*region.as_string())) settings.set("regions", Value::Array{region});
    std::ofstream(root + "/providers.json") << Value().set(fake_name(), std::move(settings)).to_json();
    setenv("XDG_CONFIG_HOME", root.c_str(), 1);
    auto made = make_providers(*loop, root + "/providers.json", root + "/home");
    if (!made) FAIL(made.error().message);
    return std::move(made->front());
  }

  Value control(const std::string& what, Value with = Value(Value::Object{})) {
    net::HttpRequest request;
    request.method = what == "state" ? "GET" : "POST";
    request.url = "http://127.0.0.1:" + std::to_string(told.integer("port")) + "/_fake/" + what;
    if (what != "state") request.body = with.to_json();
    auto answer = run_blocking(*loop, http->send(std::move(request)));
    REQUIRE(answer);
    INFO(answer->body);
    REQUIRE(answer->ok());
    return Value::from_json(answer->body).value();
  }
  void learn_needs() {  // no REQUIRE: a destructor calls it
    net::HttpRequest request;
    request.url = "http://127.0.0.1:" + std::to_string(told.integer("port")) + "/_fake/state?calls=0";
    const auto answer = run_blocking(*loop, http->send(std::move(request)));
    const Result<Value> state = answer ? Value::from_json(answer->body) : Result<Value>(answer.error());
    if (!state || !(*state)["needed"].as_array()) return;
    for (const Value& one : *(*state)["needed"].as_array()) needed_so_far().insert(*one.as_string());
  }
  void fault(const char* kind, const std::string& operation = "*", int times = 1, Value more = Value(Value::Object{})) {
    more.set("kind", kind).set("operation", operation).set("times", times);
    control("fault", std::move(more));
  }
  void pass(int seconds) {  // shared by the provider and the leases
    control("advance", Value().set("seconds", seconds).set("wall", true));
    clock.ahead_us += seconds * 1'000'000LL;
  }
  void advance(int seconds) { control("advance", Value().set("seconds", seconds)); }
  std::int64_t alive() { return control("state").integer("alive"); }
  std::size_t machines_made() { return control("state")["machines"].as_array()->size(); }
  std::size_t calls() { return control("state")["calls"].as_array()->size(); }

  template <class T>
  auto wait(T task) {
    return run_blocking(*loop, std::move(task));
  }

  std::vector<Offer> offers(const std::string& gpu = "A100", bool spot = false) {
    OfferQuery query;
    query.gpu = gpu;
    query.spot = spot;
    auto found = wait(provider->offers(query, {}));
    if (!found) FAIL(found.error().message);
    return std::move(*found);
  }

  CreateRequest order(const std::string& token, bool spot = false) {
    const std::vector<Offer> all = offers("any", spot);
    REQUIRE_FALSE(all.empty());
    CreateRequest request;
    request.offer = all.front();
    request.token = derive_uuid({token});
    std::string lease = (token + std::string(14, 'o')).substr(0, 14);
    for (char& c : lease) c = c == '_' || c == ' ' ? '-' : c;
    request.tag = "rille-0123456789ab-" + lease + "-g1-x1900000000";
    REQUIRE(request.tag.size() == 48);  // as the lease layer writes it
    request.expires_wall_us = loop->clock().wall_us() + 3600LL * 1'000'000;
    if (spot) request.cap_micros_per_hour = request.offer.price_micros_per_hour * 2;
    return request;
  }

  // Until it is what is asked for, with the fake's clock turned on meanwhile.
  Machine until(const std::string& id, MachineState state) {
    for (int i = 0; i < 60; ++i) {
      const auto machine = wait(provider->describe(id, {}));
      if (!machine) FAIL(machine.error().message);
      if (machine->state == state) return *machine;
      advance(10);
    }
    FAIL("machine " << id << " is never " << to_string(state));
    return {};
  }

  // The one machine that bears the tag is found by it, late as it may be seen, and ended.
  void end_by_tag(const std::string& tag) {
    std::vector<Machine> found;
    for (int i = 0; i < 20 && found.empty(); ++i) {
      found = wait(provider->list(tag, {})).value();
      if (found.empty()) advance(10);
    }
    REQUIRE(found.size() == 1);
    REQUIRE(wait(provider->terminate(found[0].id, {})));
    until(found[0].id, MachineState::gone);
  }
};

}  // namespace rille::provider
