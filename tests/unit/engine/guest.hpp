// A C++ guest: fibers are coroutines, functions are closures. The engine's crash tests drive it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>

#include "runtime/workflow/engine/run.hpp"

namespace rille::engine::test {

class CppGuest : public Guest {
 public:
  using Body = std::function<Async<Value>(FiberId)>;
  explicit CppGuest(Run& run) : run_(run) {}
  FunctionRef function(Body body) {
    bodies_[++next_] = std::move(body);
    return next_;
  }
  void start(FiberId id, FunctionRef f, const Value&) override { run_.loop().spawn(drive(id, bodies_.at(f))); }
  void cancel(FiberId, const Error&) override {}
  std::string where(FiberId) const override { return "guest"; }

 private:
  Task<void> drive(FiberId id, Body body) {
    Result<Value> r = co_await body(id);
    run_.fiber_done(id, std::move(r));
  }
  Run& run_;
  std::map<FunctionRef, Body> bodies_;
  FunctionRef next_ = 0;
};

struct TempDir {
  std::string path;
  TempDir() {
    path = std::filesystem::temp_directory_path() / "rille-engine-XXXXXX";
    REQUIRE(mkdtemp(path.data()));
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

}  // namespace rille::engine::test
