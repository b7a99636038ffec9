// rille.data.build; runtime/compute/data/build.hpp does the work.
#include "bindings/lua/compute/job_limits.hpp"
#include "runtime/compute/data/build.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::lua {

namespace {

Async<data::Dataset> build_on_thread(Loop& loop, Value options, JobLimits limits) {
  std::function<Result<data::Dataset>()> job = [options = std::move(options),
                                                limits = std::move(limits)]() -> Result<data::Dataset> {
    const data::Room disk = [&](std::int64_t bytes) { return limits.disk ? limits.disk->take(bytes) : success(); };
    return limits.run([&](const data::Look& look) {
      return data::build_dataset(options, {look, limits.memory, disk, {}});
    });
  };
  co_return co_await thread_job(loop, std::move(job));
}

// Replaces the path by the one that the grants allow to open.
Result<> grant_read(lua_State* L, Value& path) {
  if (!path.as_string()) return success();  // the builder names the mistake
  RILLE_TRY(std::string granted, may_read(L, *path.as_string(), Grants::Names::tree));
  path = std::move(granted);
  return success();
}

// build({ sources =, to =, .. }) -> what dataset.json says, and `kept`. Suspends the fiber.
Result<int> build(lua_State* L) {
  RILLE_TRY(Value options, to_value(L, 1, "rille.data.build's options"));
  Value::Object* fields = options.as_object();
  if (!fields)
    return make_error(ErrorKind::invalid, "rille.data.build: expected a table of options",
                      "rille.data.build { sources = { \"texts\" }, to = \"tokens\", tokenizer = \"gpt2\" }");
  if (Value::Array* sources = (*fields)["sources"].as_array())
    for (Value& source : *sources) RILLE_CHECK(grant_read(L, source));
  if (fields->contains("tokenizer")) RILLE_CHECK(grant_read(L, (*fields)["tokenizer"]));
  // An interrupted build is gone on with, so the folder is read, too.
  LuaHost& host = LuaHost::of(L);
  const std::string to = options.text("to");
  if (!to.empty()) {
    RILLE_TRY(const std::string granted, host.grants().write(to, Grants::Names::tree));
    RILLE_CHECK(host.grants().read(to, Grants::Names::tree));
    options.set("to", granted);
  }
  return await(L, build_on_thread(host.loop(), std::move(options), JobLimits::of(host)),
               [](lua_State* l, const data::Dataset& made) {
                 push_value(l, made.to_value().set("kept", made.kept));
                 return 1;
               });
}

}  // namespace

void add_data_build_natives(lua_State* L) { set_async(L, "build_data", bind<build>); }

}  // namespace rille::lua
