// What the build embeds equals what stands on disk: stdlib/'s modules, and a file over 64 KB with every byte value.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "bindings/host/stdlib_table.hpp"

namespace rille::host::embedded {
extern const char test_any_bytes[];
extern const std::size_t test_any_bytes_bytes;
}  // namespace rille::host::embedded

namespace {
std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
}  // namespace

TEST_CASE("a file of any bytes and size is embedded as it is") {
  using namespace rille::host::embedded;
  const std::string original = read(RILLE_TEST_ANY_BYTES);
  const std::string copy(test_any_bytes, test_any_bytes_bytes);
  REQUIRE(original.size() > 65536);
  CHECK(std::set<char>(original.begin(), original.end()).size() == 256);
  CHECK((copy == original));
}

TEST_CASE("stdlib modules are found by name, sorted, and equal their files") {
  using namespace rille::host;
  auto source = stdlib_source("rille.tools.luacats");
  REQUIRE(source.has_value());
  CHECK((*source == read(RILLE_TEST_STDLIB "/tools/luacats.lua")));
  CHECK_FALSE(stdlib_source("rille.tools.luacat").has_value());
  CHECK_FALSE(stdlib_source("").has_value());

  auto modules = stdlib_modules();
  REQUIRE(modules.size() == stdlib_names().size());
  for (std::size_t i = 0; i + 1 < modules.size(); ++i) CHECK(modules[i].name < modules[i + 1].name);
  for (const auto& module : modules) {
    CHECK(module.name.substr(0, 5) == "rille");
    CHECK(module.name.find("init") == std::string_view::npos);
  }
}
