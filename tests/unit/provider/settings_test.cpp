// What the settings of a provider may say, and how it is refused.
#include "runtime/workflow/provider/cloud/settings.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/workflow/provider/catalogue/cache.hpp"
#include "runtime/workflow/provider/providers.hpp"
#include "runtime/workflow/provider/remote/remote.hpp"

using namespace rille;
using namespace rille::provider;
using cloud::SettingsReader;

namespace {

Value json_of(const char* text) { return Value::from_json(text).value(); }

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an empty list says as much as none") {
  const Value some = json_of(R"({"regions": [], "zones": ["a"]})"), none = json_of(R"({"regions": []})");
  SettingsReader read("p", some);
  CHECK(read.texts("regions", {}).empty());
  CHECK(read.texts("zones", {}) == Names{"a"});
  CHECK(read.done().ok());
  SettingsReader other("p", none);
  CHECK(other.texts("regions", {"usual"}) == Names{"usual"});

  for (const char* text : {R"({})", R"({"regions": []})", R"({"regions": {}})"}) {
    CAPTURE(text);
    const auto regions = cloud::region_settings("p", json_of(text), "usual").value();
    REQUIRE(regions.size() == 1);
    CHECK(regions[0].first == "usual");
  }
}

TEST_CASE("a list that holds what is no name is refused, with what it is") {
  for (const char* text : {R"({"regions": [1]})", R"({"regions": "east"})", R"({"regions": ["east", null]})"}) {
    CAPTURE(text);
    const Value settings = json_of(text);
    SettingsReader read("p", settings);
    (void)read.texts("regions", {});
    const Result<> done = read.done();
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().kind == ErrorKind::config);
    CHECK(done.error().message.find("expected a list of strings") != std::string::npos);
  }
  CHECK_FALSE(cloud::region_settings("p", json_of(R"({"regions": [1]})"), "usual").ok());
}

TEST_CASE("a settings file with an empty list configures no provider") {
  char folder[] = "/tmp/rille-settings-XXXXXX";
  const std::string file = std::string(mkdtemp(folder)) + "/providers.json";
  const auto loop = Loop::create().value();
  for (const auto& [text, sound] : {std::pair("[]", true), std::pair("{}", true), std::pair("[1]", false)}) {
    CAPTURE(text);
    std::ofstream(file) << text;
    const auto made = make_providers(*loop, file, folder);
    REQUIRE(made.ok() == sound);
    if (sound) CHECK(made->empty());
    CHECK(read_offer_settings(file).ok() == sound);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a remote provider beyond this machine is asked by https only") {
  const auto loop = Loop::create().value();
  const auto made = [&](const char* url) {
    return make_remote_provider(*loop, Value().set("url", url).set("traits", json_of(R"({"dead_man": "provider"})")));
  };
  for (const char* url :
       {"https://cloud.example.org", "http://127.0.0.1:8000", "http://localhost/x", "http://[::1]:9/"}) {
    CAPTURE(url);
    CHECK(made(url).ok());
  }
  for (const char* url : {"http://cloud.example.org", "http://127.0.0.1.example.org/", "http://localhost@example.org",
                          "http://127.0.0.1:x@example.org/", "http://10.0.0.1:8000", "http://[::1].example.org"}) {
    CAPTURE(url);
    const auto refused = made(url);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::config);
  }
}
