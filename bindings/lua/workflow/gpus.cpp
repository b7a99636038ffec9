// GPU facts and list prices for stdlib/gpus.lua and stdlib/estimate, from runtime/workflow/provider.
#include "runtime/workflow/provider/gpus.hpp"

#include "bindings/lua/workflow/verb.hpp"
#include "runtime/workflow/lease/ask.hpp"
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/provider/catalogue/list_price.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"
#include "runtime/workflow/provider/gpu_facts.hpp"

namespace rille::lua {

namespace {

using provider::GpuFacts;

Value facts_value(const GpuFacts& f) {
  Value out;
  out.set("name", provider::gpu_name(f)).set("model", std::string(f.model)).set("socket", std::string(f.socket));
  out.set("architecture", std::string(f.architecture)).set("capability", f.capability);
  out.set("memory_bytes", f.memory_bytes).set("bytes_per_s", f.bytes_per_s);
  Value flops;
  for (const char* precision : {"fp32", "tf32", "fp16", "bf16", "fp8", "int8"})
    if (const double rate = provider::rate_of(f, precision); rate > 0) flops.set(precision, rate);
  out.set("flops", std::move(flops)).set("nvlink_bytes_per_s", f.nvlink_bytes_per_s).set("power_w", f.power_w);
  out.set("year", f.year).set("rough_price", f.rough_price_dollars);
  out.set("source", std::string(f.source)).set("confirmed", f.confirmed);
  return out;
}

// gpu_facts(name, memory_bytes) -> the GPU's facts, or nil and a similar name. gpu_facts() -> a list of all GPUs'
// facts.
int gpu_facts(lua_State* L) {
  if (lua_isnoneornil(L, 1)) {
    Value::Array all;
    for (const GpuFacts& row : provider::gpu_facts()) all.push_back(facts_value(row));
    push_value(L, Value(std::move(all)));
    return 1;
  }
  const std::string name(check_text(L, 1, "rille.gpus"));
  const double bytes = lua_isnoneornil(L, 2) ? 0 : check_number(L, 2, "rille.gpus");
  if (const GpuFacts* found = provider::gpu_facts(name, static_cast<std::int64_t>(bytes))) {
    push_value(L, facts_value(*found));
    return 1;
  }
  lua_pushnil(L);
  push(L, provider::nearest_gpu(name));
  return 2;
}

// list_prices(query) -> the listed machines that satisfy a query as for rille.offers. Sends no request, so needs no
// grant.
Result<int> list_prices(lua_State* L) {
  check_table(L, 1, "list_prices");
  RILLE_TRY(Value query, to_value(L, 1, "list_prices"));
  if (query.as_array() && query.as_array()->empty()) query = Value(Value::Object{});
  RILLE_CHECK(lease::take_timeout(query));
  provider::Workload::leave_out(query);
  RILLE_TRY(const lease::Terms terms, lease::read_terms(query, "offers"));
  Value::Array all;
  for (const provider::ListedMachine& machine : provider::listed_machines(terms.query)) all.push_back(machine.view());
  push_value(L, Value(std::move(all)));
  return 1;
}

}  // namespace

int open_gpus(lua_State* L) {
  push_rille_core(L);
  lua_getfield(L, -1, "loaded");
  lua_getfield(L, -1, "rille.native");
  set_functions(L, {{"gpu_facts", bind<gpu_facts>}, {"list_prices", bind<list_prices>}});
  lua_settop(L, 1);
  return 0;
}

}  // namespace rille::lua
