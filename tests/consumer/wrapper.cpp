// rille.hpp, checked: values both ways, errors and their fields, memory shared and released once, calls at once and in
// fibers, host functions that answer later from another thread, owners that end in any order and on any thread, and
// options of refused scripts, which are freed.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <rille.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#define CHECK(x) ((x) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), std::exit(1)))

namespace {

template <class F>
rille::Error refused(F&& f) {
  try {
    f();
  } catch (const rille::Error& e) { return e; }
  CHECK(!"an error was expected");
  std::abort();
}

void register_app(rille::Runtime& runtime, std::thread& worker) {
  using rille::Call, rille::Value;
  runtime.register_module(
      "app", {{"greet", RILLE_PURE, [](Call& c) -> Value { return "hello, " + c.text(0); }},
              {"add", RILLE_PURE,
               [](Call& c) -> Value {
                 return rille::Fields{{"sum", c[0]["a"].number() + c[0]["b"].number()},
                                      {"list", rille::List{1, "two", nullptr}}};
               }},
              {"quota", RILLE_VOLATILE, [](Call&) -> Value { throw rille::Error(RILLE_QUOTA, "none left", "wait"); }},
              {"bug", RILLE_VOLATILE, [](Call&) -> Value { throw std::out_of_range("index 4"); }},
              {"later", RILLE_VOLATILE,
               [&worker](Call& c) -> Value {
                 worker = std::thread([done = c.suspend(), n = c.number(0)]() mutable { done.resolve(n * 2); });
                 return nullptr;
               }},
              {"dropped", RILLE_VOLATILE, [](Call& c) -> Value {
                 c.suspend();
                 return nullptr;
               }}});
}

void check_runs(rille::Runtime& runtime, std::thread& worker) {
  std::string printed;
  rille::RunOptions options;
  options.print = [&printed](std::string_view text) { printed += text; };
  rille::Run run =
      runtime.run("one", "local a = require 'app' print(a.greet('moon')) return a.add({ a = 1, b = 2 }).sum", options);
  bool ended = false;
  run.on_done([&ended] { ended = true; });
  CHECK(run.to_end() == "3" && printed == "hello, moon\n" && run.state() == RILLE_RUN_DONE && ended);
  CHECK(runtime.runs_json(5).find(run.id()) != std::string::npos);
  CHECK(runtime.leases_json() == "[]" && runtime.leases_json(true) == "[]");

  CHECK(refused([&] { runtime.run("bad", "return {"); }).kind() == RILLE_INVALID);
  rille::RunOptions open;
  open.raw.rules = RILLE_RULES_OPEN;
  const rille::Error none = refused([&] { runtime.run("none", "require('app').quota()", open).to_end(); });
  CHECK(none.kind() == RILLE_QUOTA && none.message() == "none left" && none.hint() == "wait");
  CHECK(std::string(none.what()) == "none left\nhint: wait" && std::string(none.kind_name()) == "quota");
  const rille::Error bug = refused([&] { runtime.run("bug", "require('app').bug()", open).to_end(); });
  CHECK(bug.kind() == RILLE_INTERNAL && bug.message() == "index 4");
  CHECK(runtime.run("later", "return require('app').later(21)", open).to_end() == "42");
  worker.join();
  CHECK(refused([&] { runtime.run("dropped", "require('app').dropped()", open).to_end(); }).kind() == RILLE_CANCELLED);
  { runtime.run("left", "require('rille').sleep('1ms')", options).start(); }  // its handle ends first
  while (runtime.turn()) {}
}

void check_scripts(rille::Runtime& runtime) {
  rille::Function count = runtime
                              .script("count",
                                      "local n = 0 return { f = function(a) n = n + a return n, { k = 'v', 1, 2 } "
                                      "end }")
                              .find("f");  // the script stays with its function
  CHECK(count(2).number() == 2);
  const rille::List both = count.call({3}, 2);
  CHECK(both[0].number() == 5 && both[1]["k"].text() == "v" && both[1].items().size() == 2 && both[1][1].number() == 2);
  CHECK(both[1]["no"].is_nil() && both[1][9].is_nil());
  CHECK(refused([&] { (void)both[0].text(); }).message() == "expected a string, got a number");
  CHECK(refused([&] { count("x"); }).traceback().find("count:1") != std::string::npos);

  rille::Script script = runtime.script("more", R"(
    return { double = function(t) return t * 2 end, same = function(v) return v end, size = function(b) return #b end,
             make = function() return function(x) return x + 1 end end,
             wait = function(x) require("rille").sleep("1ms") return x end })");
  for (const rille::Value& v :
       {rille::Value(), rille::Value(true), rille::Value(1.5), rille::Value(std::string("a\0b", 3))}) {
    const rille::Value back = script.find("same")(v);
    CHECK(back.is_nil() == v.is_nil() && bool(back) == bool(v));
  }
  CHECK(script.find("same")(std::string("a\0b", 3)).text() == std::string("a\0b", 3));
  CHECK(script.find("make")().function()(41).number() == 42);
  CHECK(refused([&] { script.find("wait")(1); }).kind() == RILLE_STATE);
  double got = 0;
  std::exception_ptr failed;
  script.find("wait").begin({7}, [&](std::exception_ptr error, rille::List values) {
    failed = error;
    if (!error) got = values[0].number();
  });
  while (got == 0 && !failed) runtime.turn();
  CHECK(got == 7 && !failed);
  CHECK(refused([&] { script.find("nothing"); }).kind() == RILLE_INVALID);
}

void check_memory(rille::Runtime& runtime, int& released) {
  static float numbers[4] = {1, 2, 3, 4};
  rille::Script script = runtime.script("memory",
                                        "return { double = function(t) return t * 2 end, same = function(t) return "
                                        "t end, size = function(b) return #b end }");
  const rille::Memory tensor = runtime.tensor(numbers, "f32", {2, 2}, [&released] { ++released; });
  CHECK(tensor.data<float>() == numbers && tensor.view().rank == 2);
  CHECK(script.find("same")(tensor).memory().data<float>() == numbers);
  CHECK(script.find("double")(tensor).memory().data<float>()[3] == 8);
  static char bytes[5] = "abcd";
  CHECK(script.find("size")(runtime.buffer(bytes, 4, [&released] { ++released; })).number() == 4);
  CHECK(refused([&] { runtime.tensor(numbers, "f33", {4}); }).kind() == RILLE_INVALID);
}

// Options with a callback; `left` tells whether they are kept.
rille::RunOptions noted(std::weak_ptr<int>& left) {
  const auto note = std::make_shared<int>(0);
  left = note;
  rille::RunOptions options;
  options.print = [note](std::string_view) { ++*note; };
  return options;
}

void check_refused() {
  rille::Options one_run;
  one_run.runs_max = 1;
  rille::Runtime runtime(one_run);
  std::weak_ptr<int> left;
  refused([&] { runtime.run("bad", "return {", noted(left)); });
  CHECK(left.expired());
  refused([&] { runtime.run_file("/dev/null/none", noted(left)); });
  CHECK(left.expired());
  refused([&] { runtime.resume("none", noted(left)); });
  CHECK(left.expired());
  for (const char* text : {"return {", "error('no')", "print('x') require('none')"}) {
    refused([&] { runtime.script("bad", text, noted(left)); });
    CHECK(left.expired());
  }
  refused([&] {
    rille::RunOptions options = noted(left);
    options.raw.grants = "{\"raed\": true}";
    runtime.run("grants", "return 1", std::move(options));
  });
  CHECK(left.expired());

  const auto note = std::make_shared<int>(0);
  const auto add = [&](const char* module) {
    runtime.register_module(module, {{"f", RILLE_PURE, [note](rille::Call&) -> rille::Value { return ++*note; }}});
  };
  add("app");
  CHECK(refused([&] { add("app"); }).kind() == RILLE_STATE && refused([&] { add("no name"); }).kind() == RILLE_INVALID);
  CHECK(note.use_count() == 2);

  rille::Run first = runtime.run("first", "require('rille').sleep('1h')");
  first.start();
  {
    rille::Run second = runtime.run("second", "return require('app').f()", noted(left));
    CHECK(refused([&] { second.start(); }).kind() == RILLE_STATE && !left.expired());
    first.cancel();
    first.wait();
    CHECK(second.to_end() == "1");  // a run that could not start may start later
  }
  { const rille::Run never = runtime.run("never", "return 1", noted(left)); }
  runtime.run("next", "return 1").to_end();
  CHECK(left.expired());
}

// A runtime has at most 1000 scripts: one more is refused if those dropped on other threads are not freed.
void check_drops() {
  rille::Runtime runtime;
  std::weak_ptr<int> left;
  for (int round = 0; round < 4; ++round) {
    std::vector<rille::Function> functions;
    std::vector<rille::Run> runs;
    for (int i = 0; i < 300; ++i) functions.push_back(runtime.script("s", "return function() return 1 end").find(""));
    runs.push_back(runtime.run("ended", "return 1"));
    runs.back().to_end();
    runs.push_back(runtime.run("active", "require('rille').sleep('1ms')", noted(left)));
    runs.back().start();
    std::thread([f = std::move(functions), r = std::move(runs)]() mutable { f.clear(), r.clear(); }).join();
    while (runtime.turn()) {}
  }
  CHECK(runtime.script("last", "return function() return 7 end").find("")().number() == 7);
  runtime.run("next", "return 1").to_end();
  CHECK(left.expired());
  std::vector<rille::Function> functions{runtime.script("late", "return function() end").find("")};
  std::thread([f = std::move(functions)]() mutable { f.clear(); }).join();  // the runtime ends before its next turn
}

// What shutdown ended in the middle can still be freed, and is refused.
void check_after_shutdown() {
  rille::Runtime runtime;
  const char* text =
      "local rille = require 'rille' "
      "return function() rille.defer(function() rille.sleep('1h') end) rille.sleep('1h') end";
  rille::Script script = runtime.script("endless", text);
  rille::Function endless = script.find("");
  rille::check(rille_script_begin(runtime.get(), endless.get(), nullptr, 0, nullptr, nullptr, nullptr));
  runtime.turn();
  CHECK(refused([&] { runtime.shutdown(0); }).kind() == RILLE_TIMEOUT);
  CHECK(refused([&] { endless(); }).kind() == RILLE_STATE && refused([&] { script.find(""); }).kind() == RILLE_STATE);
}

}  // namespace

int main() {
  int released = 0;
  {
    std::thread worker;
    rille::Runtime runtime;
    register_app(runtime, worker);
    check_runs(runtime, worker);
    check_scripts(runtime);
    check_memory(runtime, released);
    runtime.post([] {});
    runtime.shutdown(5000);
  }
  CHECK(released == 2);
  check_refused();
  check_drops();
  check_after_shutdown();
  std::puts("rille.hpp does what it says");
}
