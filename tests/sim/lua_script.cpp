#include "tests/sim/lua_script.hpp"

#include "bindings/host/program.hpp"
#include "bindings/lua/open.hpp"

namespace rille::torture {

namespace {

using provider::sim::Options;

Script lua_script(const std::string& name, std::string result) {
  Script s;
  s.name = "lua:" + name;
  s.result = std::move(result);
  s.path = RILLE_SIM_SCRIPTS "/" + name + ".lua";
  s.load = [](World&, Loop& loop, Run& run, const std::string& script) {
    static host::Interrupter interrupter(64);  // it is never armed
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
    s.push_back(lua_script("retry", R"({"drawn":true,"ok":false,"sum":6})"));
    s.push_back(lua_script("map", "[11,21,31]"));
    s.push_back(lua_script("race", R"({"value":"30m","who":"quick"})"));
    s.push_back(lua_script("nested", R"({"got":"went on","kind":"quota","ok":false})"));
    s.push_back(lua_script("cancel", R"({"kind":"cancelled","message":"no longer needed","ok":false})"));
    s.push_back(lua_script("cleanup", R"({"kind":"integrity","message":"it does not add up","ok":false})"));
    s.push_back(lua_script("budget", R"({"kind":"budget"})"));
    s.push_back(lua_script("volumes", R"({"kind":"state","size":200000000000})"));
    s.push_back(lua_script("children", R"({"kind":"quota","ok":false,"scores":[7,14]})"));
    s.push_back(lua_script("pools", "[1,4,9,16]"));
    s.push_back(lua_script("autoscale", "[1,4,9]"));
    s.push_back(lua_script("leases_over", "[1,4,9]"));
    s.push_back(lua_script("limits", R"({"silent":false,"slow":true,"who":"limit"})"));
    s.push_back(lua_script("failover", R"({"gpu":"H200","loss":1.5,"refused":["capacity"]})"));
    s.back().cloud = [] {
      Options o = Options::calm(1);
      o.sold_out = {"b200x8", "h200x8@us-east", "h200x8@us-west"};
      return o;
    };
    s.push_back(lua_script("resize", R"({"count":8,"gpu":"A100 80GB","refused":"capacity","small":"looked"})"));
    s.back().cloud = [] {
      Options o = Options::calm(1);
      o.sold_out = {"b200x8"};
      return o;
    };
    s.push_back(lua_script("preemption", R"({"loss":1.31})"));
    s.back().cloud = [] {
      Options o = Options::calm(1);
      o.fates[1] = {25 * 60'000, false};
      o.fates[2] = {15 * 60'000, true};
      return o;
    };
    s.push_back(lua_script("replacement", R"("trained")"));
    s.back().cloud = [] {
      Options o = Options::calm(1);
      o.fates[1] = {35 * 60'000, false};
      o.fates[2] = {40 * 60'000, true};
      return o;
    };
    s.push_back(lua_script("once", R"("paid and sent once")"));
    s.back().steps_vary = true;
    s.push_back(lua_script("signals", R"(["nobody",{"by":"a person"}])"));
    s.back().prepare = [](World& w) { w.send_signal(7'200'000, "go", "{\"by\":\"a person\"}"); };
    s.push_back(lua_script("cancelled_run", "error cancelled: by hand"));
    s.back().cancel_ms = 5 * 3'600'000;
    s.back().steps_vary = true;
    return s;
  }();
  return all;
}

}  // namespace rille::torture
