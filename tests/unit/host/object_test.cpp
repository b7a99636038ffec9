#include "bindings/host/object.hpp"

#include <catch2/catch.hpp>
#include <memory>

#include "bindings/host/open.hpp"
#include "tests/unit/host/fake_run.hpp"

using namespace rille;
using namespace rille::host;
using rille::test::Script;

namespace {

struct Plain {
  std::shared_ptr<int> held;
};
struct Rich {
  double x;
};

struct Late {};

int shared_count = 0, late_defined = 0;

int get(lua_State* L) {
  push(L, *check_object<Plain>(L, 1, "plain:get").held);
  return 1;
}

int make_plain(lua_State* L) {
  push_object(L, Plain{std::shared_ptr<int>(new int(7), [](int* p) {
                --shared_count;
                delete p;
              })});
  ++shared_count;
  return 1;
}

int make_rich(lua_State* L) {
  push_object(L, Rich{check_number(L, 1, "x")});
  return 1;
}

int late_name(lua_State* L) {
  check_object<Late>(L, 1, "late:name");
  push(L, "late");
  return 1;
}

int define_late(lua_State* L) {
  ++late_defined;
  define_class<Late>(L, {.name = "Late", .methods = {{"name", bind<late_name>}}});
  return 0;
}

int make_late(lua_State* L) {
  push_object(L, Late{});
  return 1;
}

bool rich_field(lua_State* L, std::string_view key) {
  if (key != "x") return false;
  push(L, check_object<Rich>(L, 1, "rich").x);
  return true;
}

Result<Value> encode_rich(lua_State* L, int index) { return Value().set("x", test_object<Rich>(L, index)->x); }

int open_classes(lua_State* L) {
  define_class<Plain>(L, {.name = "Plain", .methods = {{"get", bind<get>}}});
  define_class<Rich>(L, {.name = "Rich", .field = rich_field, .fields = {"x"}, .encode = encode_rich});
  define_class_later<Late>(L, bind<define_late>);
  lua_newtable(L);
  set_functions(L, {{"plain", bind<make_plain>},
                    {"rich", bind<make_rich>},
                    {"late", bind<make_late>},
                    {"late_name", bind<late_name>}});
  set_global(L, "make");
  return 0;
}

std::string run(const std::string& source) {
  Script script;
  script.options.open = {open_classes};
  Result<Value> r = script(source);
  return r ? r->to_json() : r.error().summary();
}

}  // namespace

TEST_CASE("objects have methods and fields, and say what is near") {
  CHECK(run("return make.plain():get()") == "7");
  CHECK(run("return make.rich(2).x") == "2");
  CHECK(run("return make.plain():gte()").find("Plain has no field or method 'gte'\n  hint: did you mean 'get'?") !=
        std::string::npos);
  CHECK(run("return make.rich(1).y").find("Rich has no field or method 'y'") != std::string::npos);
  CHECK(run("make.rich(1).x = 5").find("the fields of a Rich cannot be set") != std::string::npos);
  CHECK(run("local p = make.plain() return p.get(make.rich(1))").find("plain:get: expected Plain, got a Rich") !=
        std::string::npos);
  CHECK(run("local p = make.plain() return p.get({})").find("called with a colon") != std::string::npos);
  CHECK(run("return tostring(make.plain())") == R"("Plain")");
  CHECK(run("return {make.rich(3)}") == R"([{"x":3}])");
  CHECK(run("return make.plain()").find("the result is a Plain, which cannot be stored") != std::string::npos);
  CHECK(run("return getmetatable(make.plain())") == R"("Plain")");
}

TEST_CASE("a class can be defined when its first object is made") {
  late_defined = 0;
  CHECK(run("return make.plain():get()") == "7");
  CHECK(late_defined == 0);
  CHECK(run("local a, b = make.late(), make.late() return {a:name(), tostring(b)}") == R"(["late","Late"])");
  CHECK(late_defined == 1);
  CHECK(run("return make.late_name(make.plain())").find("late:name: expected Late, got a Plain") != std::string::npos);
}

TEST_CASE("objects as keys iterate in the order of their creation") {
  CHECK(run("local a, b, c = make.rich(1), make.rich(2), make.rich(3) local t = {[c] = 'c', [a] = 'a', [b] = 'b'} "
            "local out = {} for k, v in pairs(t) do out[#out + 1] = v end return out") == R"(["a","b","c"])");
}

TEST_CASE("objects are destroyed with the state") {
  shared_count = 0;
  run("for i = 1, 100 do make.plain() end collectgarbage()");
  CHECK(shared_count == 0);
}
