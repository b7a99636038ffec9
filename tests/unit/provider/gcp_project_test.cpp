// Which project of Google's is meant where neither the settings nor the environment say it: as gcloud has it.
#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/core/net/credentials/gcp/keys.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/gcp/gcp.hpp"
#include "runtime/workflow/provider/owner.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct GcloudHome {
  std::string path;
  GcloudHome() {
    char name[] = "/tmp/rille-gcloud-XXXXXX";
    path = mkdtemp(name);
  }
  ~GcloudHome() { std::filesystem::remove_all(path); }
};

// A home of gcloud's, and an environment that names nothing else.
struct Gcloud {
  GcloudHome home;
  std::map<std::string, std::optional<std::string>> before;

  Gcloud() {
    for (const char* name : {"HOME", "CLOUDSDK_CONFIG", "CLOUDSDK_ACTIVE_CONFIG_NAME", "CLOUDSDK_CORE_PROJECT",
                             "GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS"}) {
      const char* text = std::getenv(name);
      before[name] = text ? std::optional<std::string>(text) : std::nullopt;
      unsetenv(name);
    }
    setenv("HOME", home.path.c_str(), 1);
    std::filesystem::create_directories(folder() + "/configurations");
  }
  ~Gcloud() {
    for (const auto& [name, text] : before)
      if (text) setenv(name.c_str(), text->c_str(), 1);
      else unsetenv(name.c_str());
  }
  Gcloud(const Gcloud&) = delete;

  std::string folder() const { return home.path + "/.config/gcloud"; }
  void write(const std::string& name, const std::string& text) {
    REQUIRE(store::write_file_atomic(folder() + "/" + name, text).ok());
  }
  // Whose machines the provider would rent.
  std::string owner(const char* settings = R"({"zone": "us-central1-a"})") {
    auto loop = Loop::create().value();
    auto made = make_gcp_provider({*loop, home.path, home.path, Value::from_json(settings).value()});
    if (!made) return made.error().message;
    return run_blocking(*loop, owner_of(made->get(), "", {})).value();
  }
};

}  // namespace

TEST_CASE("gcp: the project of gcloud's active configuration") {
  Gcloud gcloud;
  CHECK(net::gcp::gcloud_project().value().empty());
  CHECK(gcloud.owner() == "gcp: no project is set");
  gcloud.write("configurations/config_default", "[core]\naccount = me@example.com\nproject = usual\n");
  gcloud.write("configurations/config_other", "[compute]\nzone = z\n[core]\nproject = other\n");
  CHECK(gcloud.owner() == "project usual");
  gcloud.write("active_config", "other");
  CHECK(gcloud.owner() == "project other");
  setenv("CLOUDSDK_ACTIVE_CONFIG_NAME", "default", 1);
  CHECK(gcloud.owner() == "project usual");
  setenv("CLOUDSDK_ACTIVE_CONFIG_NAME", "NONE", 1);
  CHECK(net::gcp::gcloud_project().value().empty());
  setenv("CLOUDSDK_ACTIVE_CONFIG_NAME", "gone", 1);
  CHECK(gcloud.owner().find("no configuration 'gone'") != std::string::npos);
  unsetenv("CLOUDSDK_ACTIVE_CONFIG_NAME");
  gcloud.write("active_config", "gone");  // removed by hand: gcloud goes on without it
  CHECK(net::gcp::gcloud_project().value().empty());
}

TEST_CASE("gcp: gcloud's folder may be elsewhere, and a project in the settings comes first") {
  Gcloud gcloud;
  const std::string moved = gcloud.home.path + "/moved";
  std::filesystem::create_directories(moved + "/configurations");
  gcloud.write("configurations/config_default", "[core]\nproject = usual\n");
  REQUIRE(store::write_file_atomic(moved + "/configurations/config_default", "[core]\nproject = moved\n").ok());
  setenv("CLOUDSDK_CONFIG", moved.c_str(), 1);
  CHECK(gcloud.owner() == "project moved");
  unsetenv("CLOUDSDK_CONFIG");
  gcloud.write("application_default_credentials.json", R"({"type": "authorized_user", "quota_project_id": "payer"})");
  CHECK(gcloud.owner() == "project usual");
  gcloud.write("configurations/config_default", "[core]\naccount = me\n");
  CHECK(gcloud.owner() == "project payer");
  gcloud.write("configurations/config_default", "[core]\nproject = usual\n");
  gcloud.write("key.json", R"({"type": "service_account", "project_id": "robots"})");
  setenv("GOOGLE_APPLICATION_CREDENTIALS", (gcloud.folder() + "/key.json").c_str(), 1);
  CHECK(gcloud.owner() == "project robots");
  setenv("GOOGLE_CLOUD_PROJECT", "told", 1);
  CHECK(gcloud.owner() == "project told");
  CHECK(gcloud.owner(R"({"zone": "us-central1-a", "project": "mine"})") == "project mine");
}
