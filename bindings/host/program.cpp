#include "bindings/host/program.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/workflow/engine/run.hpp"

namespace rille::host {

namespace {

class LuaProgram final : public engine::Program {
 public:
  LuaProgram(std::unique_ptr<LuaHost> host, Interrupter& interrupter)
      : host_(std::move(host)), interrupter_(interrupter) {}
  ~LuaProgram() override { interrupter_.remove(host_.get()); }
  Guest& guest() override { return *host_; }
  FunctionRef main() override { return main_; }
  Result<> load(const std::string& script) {
    if (!interrupter_.add(host_.get()))
      return make_error(ErrorKind::quota, "too many child runs are active in this process",
                        "start fewer at a time: rille.map(name, list, { limit = 8 }, fn)");
    RILLE_TRY(main_, host_->load_file(script));
    return {};
  }

 private:
  std::unique_ptr<LuaHost> host_;
  Interrupter& interrupter_;
  FunctionRef main_ = 0;
};

}  // namespace

Result<std::unique_ptr<engine::Program>> load_program(Loop& loop, HostOptions options, Interrupter& interrupter,
                                                      engine::Run& run, const std::string& script,
                                                      engine::RunLimits limits) {
  options.rules = Rules::workflow;
  options.script_directory = std::filesystem::path(script).parent_path().string();
  RILLE_TRY(std::unique_ptr<LuaHost> host, LuaHost::create(loop, std::move(options)));
  host->bind_run(run);
  RILLE_CHECK(
      settle_grants(run, host->grants()));  // the child gets the parent's current grants, also when it is resumed
  host->grant(host->grants());
  run.limit(shared_limits(*host, std::move(limits)));
  auto program = std::make_unique<LuaProgram>(std::move(host), interrupter);
  RILLE_CHECK(program->load(script));
  return std::unique_ptr<engine::Program>(std::move(program));
}

engine::RunLimits shared_limits(const LuaHost& host, engine::RunLimits limits) {
  limits.may_connect = host.may_connect();
  limits.memory = host.options().memory;
  limits.disk = host.options().disk;
  return limits;
}

Result<Grants> settle_grants(engine::RunControl& run, const Grants& given) {
  constexpr const char* where = ":grants";  // among the run's sources; no module and no file has this name
  const bool all = given.is_everything();
  Result<std::string> stored = run.pinned(where, [&]() -> Result<std::string> {
    if (!all) return given.to_value().to_json();
    return make_error(ErrorKind::state, "the run has all grants");
  });
  if (!stored) return all ? Result<Grants>(given) : Result<Grants>(std::move(stored).error());
  RILLE_TRY(const Value value, Value::from_json(*stored));
  return Grants::parse(value);
}

Result<std::int64_t> settle_spend(engine::RunControl& run, std::int64_t given) {
  bool unlimited = false;
  Result<std::string> stored = run.pinned(":spend_micros", [&]() -> Result<std::string> {
    unlimited = given < 0;
    if (unlimited) return make_error(ErrorKind::state, "the run has no limit");
    return std::to_string(given);
  });
  if (unlimited) return given;
  if (!stored) return std::move(stored).error();
  std::int64_t limit = 0;  // an altered record permits nothing
  std::from_chars(stored->data(), stored->data() + stored->size(), limit);
  return std::max<std::int64_t>(limit, 0);
}

std::function<void()> interrupt_child(std::function<void()> interrupt, engine::RunControl& parent,
                                      engine::RunControl& child) {
  return [interrupt = std::move(interrupt), &parent, &child] {
    if (interrupt) interrupt();
    if (parent.cancel_waits())
      child.cancel(make_error(ErrorKind::cancelled, "interrupted with the run that waits for it"));
  };
}

}  // namespace rille::host
