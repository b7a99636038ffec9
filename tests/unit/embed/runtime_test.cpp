// The ends of rille.h: shutdown, destroy, cancel from other threads, NULL, removal, a home in memory, the allocator.
#include <pthread.h>

#include <cstdlib>
#include <thread>

#include "runtime/workflow/engine/engine.hpp"
#include "tests/unit/embed/embed.hpp"

namespace rille::test {

namespace {

rille_error* register_app(rille_runtime* rt) {
  static rille_function_spec spec{};
  spec.struct_size = sizeof spec;
  spec.name = "now";
  spec.effect = RILLE_STEP;
  spec.function = [](rille_call* call, void*) { rille_call_return_number(call, 1); };
  return rille_register_module(rt, "app", &spec, 1);
}

std::string state_of(rille_runtime* rt, const std::string& id) {
  char* text = nullptr;
  OK(rille_runs(rt, 100, &text));
  Result<Value> runs = Value::from_json(text);
  rille_free(text);
  REQUIRE(runs);
  for (const Value& run : *runs->as_array())
    if (run.text("id") == id) return run.text("state");
  return "";
}

}  // namespace

TEST_CASE("a shutdown keeps its deadline although scripts compute, and says what had not ended", "[embed]") {
  Embedded e;
  const char* stubborn = "while true do pcall(function() while true do end end) end";
  const char* slow =
      "local rille = require 'rille' rille.defer(function() rille.sleep('1h') end) print('.') rille.sleep('1h')";
  std::string begun;
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.print = [](const char* text, size_t length, void* to) {
    static_cast<std::string*>(to)->append(text, length);
  };
  options.payload = &begun;
  rille_run* workflow = e.start(slow, &options);
  options.rules = RILLE_RULES_OPEN;
  rille_run* open = e.start(slow, &options);
  rille_run* loop = e.start(stubborn);
  while (begun.size() < 4) OK(rille_turn(e.rt, 1, nullptr));
  for (int i = 0; i < 50; ++i) OK(rille_turn(e.rt, 0, nullptr));
  rille_error* error = rille_shutdown(e.rt, 100);
  REQUIRE(error);
  REQUIRE(rille_error_kind(error) == RILLE_TIMEOUT);
  std::string said = take_text(error);
  REQUIRE_THAT(said, Catch::Contains("were suspended: " + std::string(rille_run_id(workflow))));
  REQUIRE_THAT(said, Catch::Contains("without the rest of their cleanup: " + std::string(rille_run_id(open))));
  REQUIRE(rille_run_state(workflow) == RILLE_RUN_SUSPENDED);
  REQUIRE(rille_run_state(open) == RILLE_RUN_CANCELLED);
  REQUIRE(rille_run_error(open));
  REQUIRE(rille_run_state(loop) != RILLE_RUN_RUNNING);
}

TEST_CASE("a shutdown in whose time everything ends has no error", "[embed]") {
  Embedded e;
  rille_run* run = e.start("while true do end");
  for (int i = 0; i < 10; ++i) OK(rille_turn(e.rt, 0, nullptr));
  OK(rille_shutdown(e.rt, 60'000));
  REQUIRE(rille_run_state(run) == RILLE_RUN_CANCELLED);
}

TEST_CASE("another thread cancels one run", "[embed]") {
  Embedded e;
  rille_run* kept = e.start("require('rille').signal('go') return 1");
  rille_run* prepared = e.prepare("return 2");
  rille_run* run = e.start("while true do end");
  for (int i = 0; i < 10; ++i) OK(rille_turn(e.rt, 0, nullptr));
  std::string failed[3];
  std::thread([&] {
    failed[0] = take_text(rille_run_cancel(run, "from outside"));
    failed[1] = take_text(rille_run_cancel(prepared, nullptr));
    failed[2] = take_text(rille_destroy(e.rt));
  }).join();
  REQUIRE(failed[0].empty());
  REQUIRE(failed[1].empty());
  REQUIRE_THAT(failed[2], Catch::Contains("another thread"));
  e.turn_to_end(run, 1);
  REQUIRE(rille_run_state(run) == RILLE_RUN_CANCELLED);
  REQUIRE(rille_error_message(rille_run_error(run)) == std::string("from outside"));
  REQUIRE(rille_run_state(prepared) == RILLE_RUN_CANCELLED);
  REQUIRE(rille_run_state(kept) == RILLE_RUN_RUNNING);
}

TEST_CASE("a runtime is not destroyed in a callback", "[embed]") {
  Embedded e;
  struct Seen {
    rille_runtime* rt;
    std::string said;
  } seen{e.rt, ""};
  OK(rille_post(
      e.rt,
      [](void* p) {
        auto* s = static_cast<Seen*>(p);
        s->said = take_text(rille_destroy(s->rt));
      },
      &seen));
  while (seen.said.empty()) OK(rille_turn(e.rt, 1, nullptr));
  REQUIRE_THAT(seen.said, Catch::Contains("callback"));
  OK(rille_destroy(e.rt));
  e.rt = nullptr;
  OK(rille_destroy(nullptr));
}

TEST_CASE("a runtime is not ended in a function that a script calls", "[embed]") {
  Embedded e;
  struct Seen {
    rille_runtime* rt;
    std::string said[2];
  } seen{e.rt, {}};
  const rille_function_spec end = {sizeof(rille_function_spec), "end_it", RILLE_PURE,
                                   [](rille_call*, void* p) {
                                     auto* s = static_cast<Seen*>(p);
                                     s->said[0] = take_text(rille_destroy(s->rt));
                                     s->said[1] = take_text(rille_shutdown(s->rt, 0));
                                   },
                                   &seen};
  OK(rille_register_module(e.rt, "app", &end, 1));
  const std::string source = "local app = require 'app' return { go = function() app.end_it() end }";
  rille_script* script = nullptr;
  OK(rille_script_load(e.rt, "s.lua", source.data(), source.size(), nullptr, &script));
  rille_script_function go = 0;
  OK(rille_script_find(script, "go", &go));
  OK(rille_script_call(e.rt, go, nullptr, 0, nullptr, 0));
  for (const std::string& said : seen.said) REQUIRE_THAT(said, Catch::Contains("callback"));
  rille_script_free(script);
}

TEST_CASE("getters take NULL", "[embed]") {
  REQUIRE(rille_error_kind(nullptr) == RILLE_INTERNAL);
  REQUIRE(rille_error_message(nullptr) == std::string());
  REQUIRE(rille_error_kind_name(nullptr) == std::string());
  REQUIRE(rille_error_hint(nullptr) == std::string());
  REQUIRE(rille_error_code(nullptr) == std::string());
  REQUIRE(rille_error_traceback(nullptr) == std::string());
  REQUIRE(rille_error_retryable(nullptr) == 0);
  REQUIRE(rille_error_retry_after_ms(nullptr) == -1);
  REQUIRE(rille_error_http_status(nullptr) == 0);
  REQUIRE(rille_error_field(nullptr, "message") == nullptr);
  REQUIRE(rille_error_cause(nullptr) == nullptr);
  REQUIRE(rille_error_to_json(nullptr) == std::string("null"));
  REQUIRE(rille_poll_fd(nullptr) == -1);
  REQUIRE(rille_poll_timeout_ms(nullptr) == 0);
  REQUIRE(rille_run_id(nullptr) == std::string());
  REQUIRE(rille_run_state(nullptr) == RILLE_RUN_NEW);
  std::size_t length = 7;
  REQUIRE(rille_run_result(nullptr, &length) == nullptr);
  REQUIRE(length == 0);
  REQUIRE(rille_run_error(nullptr) == nullptr);
  REQUIRE(rille_run_memory_bytes(nullptr) == 0);
  REQUIRE(rille_call_name(nullptr) == std::string());
  REQUIRE(rille_call_run_id(nullptr) == std::string());
  REQUIRE(rille_call_count(nullptr) == 0);
  REQUIRE(rille_call_json(nullptr, 0, nullptr) == std::string("null"));
  double number = 0;
  REFUSED(rille_call_number(nullptr, 0, &number), "NULL");
  rille_call_return_number(nullptr, 1);
  rille_call_fail(nullptr, nullptr);
  REQUIRE(rille_call_suspend(nullptr) == nullptr);
  REQUIRE(rille_completion_abandoned(nullptr) == 1);
  REFUSED(rille_turn(nullptr, 0, nullptr), "NULL");
  REFUSED(rille_run_cancel(nullptr, nullptr), "NULL");
  REFUSED(rille_run_remove(nullptr, "x", nullptr, nullptr), "NULL");
}

TEST_CASE("rille.sleep(0) leaves the turn under open rules", "[embed]") {
  Embedded e;
  rille_run* run = e.start_open("local rille = require 'rille' while true do rille.sleep(0) end");
  for (int i = 0; i < 20; ++i) OK(rille_turn(e.rt, 0, nullptr));
  REQUIRE(rille_run_state(run) == RILLE_RUN_RUNNING);
  OK(rille_run_cancel(run, nullptr));
  e.turn_to_end(run, 1);
  REQUIRE(rille_run_state(run) == RILLE_RUN_CANCELLED);
}

TEST_CASE("a run is not resumed without the host program's modules, and stays as it was", "[embed]") {
  Embedded first;
  OK(register_app(first.rt));
  bool begun = false;
  rille_run_options options;
  rille_run_options_init(&options, sizeof options);
  options.print = [](const char*, size_t, void* to) { *static_cast<bool*>(to) = true; };
  options.payload = &begun;
  rille_run* run =
      first.start("local a = require('app').now() print(a) require('rille').signal('go') return a", &options);
  std::string id = rille_run_id(run);
  while (!begun) OK(rille_turn(first.rt, 1, nullptr));
  OK(rille_destroy(first.rt));
  first.rt = nullptr;
  {
    Embedded other(first.home);
    REFUSED(rille_run_resume(other.rt, id.c_str(), nullptr, &run), "uses its module 'app'");
    REQUIRE(state_of(other.rt, id) == "suspended");
  }
  {  // as `rille resume` does
    Result<std::unique_ptr<Loop>> loop = Loop::create();
    REQUIRE(loop);
    engine::EngineOptions at;
    at.home = first.home;
    Result<std::unique_ptr<engine::Engine>> engine = engine::Engine::open(**loop, at);
    REQUIRE(engine);
    Result<std::unique_ptr<engine::Run>> resumed = run_blocking(**loop, (*engine)->resume("last", engine::RunHooks()));
    REQUIRE(!resumed);
    REQUIRE(resumed.error().kind == ErrorKind::state);
    Result<engine::RunRow> row = (*engine)->run(id);
    REQUIRE(row);
    REQUIRE(row->state == "suspended");
    REQUIRE(row->epoch == 1);
  }
  Embedded again(first.home);
  OK(register_app(again.rt));
  OK(rille_run_resume(again.rt, id.c_str(), nullptr, &run));
  OK(rille_run_start(run));
  OK(rille_signal(again.rt, id.c_str(), "go", nullptr, nullptr, nullptr));
  OK(rille_run_wait(run, -1));
  REQUIRE(Embedded::result(run) == "1");
}

TEST_CASE("an ended run is removed with its folder", "[embed]") {
  Embedded e;
  struct Outcome {
    int calls = 0;
    std::string error;
  } outcome;
  auto done = [](const rille_error* error, void* payload) {
    auto* o = static_cast<Outcome*>(payload);
    ++o->calls;
    o->error = error ? rille_error_to_json(error) : "";
  };
  rille_run* waits = e.start("require('rille').signal('go')");
  rille_run* run = e.start_open("return 3");
  OK(rille_run_wait(run, -1));
  std::string id = rille_run_id(run);
  REQUIRE(std::filesystem::exists(e.home + "/runs/" + id));
  OK(rille_run_remove(e.rt, id.c_str(), done, &outcome));
  while (outcome.calls < 1) OK(rille_turn(e.rt, 1, nullptr));
  INFO(outcome.error);
  REQUIRE(outcome.error.empty());
  REQUIRE(!std::filesystem::exists(e.home + "/runs/" + id));
  REQUIRE(state_of(e.rt, id).empty());
  REQUIRE(Embedded::result(run) == "3");
  OK(rille_run_remove(e.rt, rille_run_id(waits), done, &outcome));
  while (outcome.calls < 2) OK(rille_turn(e.rt, 1, nullptr));
  REQUIRE_THAT(outcome.error, Catch::Contains("has not ended"));
}

TEST_CASE("a home in memory leaves nothing on the disk", "[embed]") {
  Embedded e(":memory:");
  OK(register_app(e.rt));
  rille_run* run = e.start(R"lua(
    local rille = require "rille"
    local large = rille.step("large", function() return ("x"):rep(200000) end)
    local total = 0
    rille.map("m", { 1, 2, 3 }, function(i)
      local value = rille.step("s", function() return i end)
      total = total + value
    end)
    rille.sleep(0.001)
    return { #large, total, require("app").now() })lua");
  OK(rille_run_wait(run, -1));
  REQUIRE(Embedded::result(run) == "[200000,6,1]");
  REQUIRE(state_of(e.rt, rille_run_id(run)) == "done");
  run = e.start("return require('rille').home");
  OK(rille_run_wait(run, -1));
  REQUIRE_THAT(Embedded::result(run), Catch::Contains("keeps all state in memory"));
  rille_run_options granted;
  rille_run_options_init(&granted, sizeof granted);
  granted.grants = "{\"all\": true}";
  run = e.start("require('rille').rent('box', { provider = 'local' })", &granted);
  OK(rille_run_wait(run, -1));
  REQUIRE_THAT(Embedded::result(run), Catch::Contains("can rent nothing"));
  struct Outcome {
    int calls = 0;
  } outcome;
  OK(rille_run_remove(
      e.rt, rille_run_id(run),
      [](const rille_error* error, void* o) { static_cast<Outcome*>(o)->calls += error ? 100 : 1; }, &outcome));
  while (outcome.calls == 0) OK(rille_turn(e.rt, 1, nullptr));
  REQUIRE(outcome.calls == 1);
  rille_run* waits = e.start("require('rille').signal('go')");
  for (int i = 0; i < 20; ++i) OK(rille_turn(e.rt, 1, nullptr));
  OK(rille_destroy(e.rt));
  e.rt = nullptr;
  (void)waits;
  REQUIRE(!std::filesystem::exists(":memory:"));
}

TEST_CASE("Lua's memory comes from the host program's allocator", "[embed]") {
  struct Count {
    std::int64_t bytes = 0, most = 0, limit = 0;
  } count;
  rille_options options;
  rille_options_init(&options, sizeof options);
  options.home = ":memory:";
  options.allocate = [](void* payload, void* pointer, std::size_t old_size, std::size_t new_size) -> void* {
    auto* c = static_cast<Count*>(payload);
    if (!pointer) old_size = 0;
    auto after = c->bytes - static_cast<std::int64_t>(old_size) + static_cast<std::int64_t>(new_size);
    if (new_size == 0) {
      std::free(pointer);
      c->bytes = after;
      return nullptr;
    }
    if (c->limit && after > c->limit) return nullptr;
    void* made = std::realloc(pointer, new_size);
    if (made) c->most = std::max(c->most, c->bytes = after);
    return made;
  };
  options.allocate_payload = &count;
  rille_runtime* rt = nullptr;
  OK(rille_create(&options, &rt));
  auto run_it = [&](const char* source) {
    rille_run* run = nullptr;
    OK(rille_run_from_source(rt, "test.lua", source, std::strlen(source), nullptr, &run));
    OK(rille_run_start(run));
    OK(rille_run_wait(run, -1));
    return Embedded::result(run);
  };
  REQUIRE(run_it("return #('x'):rep(1e6)") == "1000000");
  REQUIRE(count.most > 1'000'000);
  count.limit = 20 << 20;
  REQUIRE_THAT(run_it("local t = {} for i = 1, 1e9 do t[i] = { i } end"), Catch::Contains("memory"));
  OK(rille_destroy(rt));
  REQUIRE(count.bytes == 0);
}

TEST_CASE("the version of the header is the library's", "[embed]") {
  std::string text = std::to_string(RILLE_VERSION_MAJOR) + "." + std::to_string(RILLE_VERSION_MINOR) + "." +
                     std::to_string(RILLE_VERSION_PATCH);
  REQUIRE(text == rille_version());
  static_assert(RILLE_VERSION_NUMBER == RILLE_VERSION_MAJOR * 10000 + RILLE_VERSION_MINOR * 100 + RILLE_VERSION_PATCH);
}

}  // namespace rille::test
