#include "tests/sim/lua_script.hpp"

#include "bindings/host/program.hpp"
#include "bindings/lua/open.hpp"

namespace rille::torture {

namespace {

using provider::sim::Options;

Script lua_script(const std::string& name) {
  Script s;
  s.name = "lua:" + name;
  s.path = RILLE_SIM_SCRIPTS "/" + name + ".lua";
  s.load = [](World&, Loop& loop, Run& run, const std::string& script) {
    static host::Interrupter interrupter(64);  // nobody arms it
    host::HostOptions options;
    options.open = lua::openers();
    return host::load_program(loop, std::move(options), interrupter, run, script);
  };
  return s;
}

}  // namespace

const std::vector<Script>& lua_scripts() {
  static const std::vector<Script> all = [] {
    std::vector<Script> s;
    for (const char* name : {"retry", "map", "race", "nested", "cancel", "cleanup", "budget", "children", "pools",
                             "limits"})
      s.push_back(lua_script(name));
    s.push_back(lua_script("failover"));
    s.back().cloud = [] {
      Options o = Options::calm(1);
      o.sold_out = {"b200x8", "h200x8@us-east", "h200x8@us-west"};
      return o;
    };
    s.push_back(lua_script("preemption"));
    s.back().cloud = [] {
      Options o = Options::calm(1);
      o.fates[1] = {25 * 60'000, false};
      o.fates[2] = {15 * 60'000, true};
      return o;
    };
    s.push_back(lua_script("replacement"));
    s.back().cloud = [] {
      Options o = Options::calm(1);
      o.fates[1] = {35 * 60'000, false};
      o.fates[2] = {40 * 60'000, true};
      return o;
    };
    s.push_back(lua_script("once"));
    s.back().steps_vary = true;
    s.push_back(lua_script("signals"));
    s.back().prepare = [](World& w) { w.send_signal(7'200'000, "go", "{\"by\":\"a person\"}"); };
    s.push_back(lua_script("cancelled_run"));
    s.back().cancel_ms = 5 * 3'600'000;
    s.back().steps_vary = true;
    return s;
  }();
  return all;
}

}  // namespace rille::torture
