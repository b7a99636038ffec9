// A sign-in at AWS's IAM Identity Center that several programs renew: its refresh token can be used once, and all of
// them share its file. Sign-ins themselves are tested in sign_in_test.cpp and contract.keys.aws.
#include "runtime/core/net/credentials/aws/sso.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <mutex>

#include "runtime/core/loop/together.hpp"
#include "runtime/core/net/credentials/aws/keys.hpp"
#include "runtime/core/net/sign/parts.hpp"
#include "runtime/core/store/file.hpp"
#include "tests/unit/net/scripted_server.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::net;
using Request = ScriptedServer::Request;
using Wire = ScriptedServer::Wire;

namespace {

constexpr const char* sso_config = R"([profile work]
sso_session = corp
sso_account_id = 1
sso_role_name = r
[sso-session corp]
sso_region = us-east-1
sso_start_url = https://c
)";

struct Variable {
  std::string name;
  std::optional<std::string> before;
  Variable(std::string n, const std::string& value) : name(std::move(n)) {
    if (const char* text = std::getenv(name.c_str())) before = text;
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variable() { before ? setenv(name.c_str(), before->c_str(), 1) : unsetenv(name.c_str()); }
};

struct SignIn {
  TempDir home;
  Variable vars[5] = {{"HOME", home.path.string()},
                      {"AWS_PROFILE", "work"},
                      {"AWS_ACCESS_KEY_ID", ""},
                      {"AWS_CONFIG_FILE", home.file("config")},
                      {"AWS_WEB_IDENTITY_TOKEN_FILE", ""}};
  std::unique_ptr<Loop> loop = Loop::create().value();
  std::string file;
  std::mutex mutex;
  std::vector<std::string> renewals, bearers;  // the refresh tokens that came; with which tokens keys were asked for
  std::function<void(const std::string& refresh_token, Wire&)> renew;
  ScriptedServer server{[this](const Request& r, Wire& w) { answer(r, w); }};

  SignIn() {
    std::filesystem::create_directories(home.file(".aws/sso/cache"));
    file = home.file(".aws/sso/cache/") + net::sha1_hex("corp") + ".json";
    REQUIRE(store::write_file_atomic(home.file("config"), sso_config, 0600));
    write("old", "refresh-1", "2020-01-01T00:00:00Z");
  }
  void write(const std::string& token, const std::string& refresh, const std::string& ends) {
    Value v;
    v.set("accessToken", token).set("refreshToken", refresh).set("expiresAt", ends).set("clientId", "c");
    v.set("clientSecret", "s").set("registrationExpiresAt", "2199-01-01T00:00:00Z");
    store::write_file_atomic(file, v.to_json(), 0600).ok();  // also called by the server's threads: no REQUIRE
  }
  Value kept() const { return Value::from_json(store::read_file(file, 1 << 16).value()).value(); }
  static void give(Wire& w, const std::string& token, const std::string& refresh) {
    Value v;
    v.set("accessToken", token).set("refreshToken", refresh).set("expiresIn", 28'800);
    w.answer(200, v.to_json());
  }
  static void refuse(Wire& w) {
    w.answer(400, R"({"error": "invalid_grant"})", "x-amzn-ErrorType: InvalidGrantException\r\n");
  }
  // The server's threads write them.
  std::vector<std::string> seen(const std::vector<std::string>& list) {
    const std::lock_guard lock(mutex);
    return list;
  }
  void answer(const Request& r, Wire& w) {
    const std::lock_guard lock(mutex);
    if (r.target == "/token") {
      renewals.push_back(Value::from_json(r.body).value().text("refreshToken"));
      return renew(renewals.back(), w);
    }
    bearers.push_back(r.header("x-amz-sso_bearer_token"));
    w.answer(200, R"({"roleCredentials": {"accessKeyId": "i", "secretAccessKey": "k", "sessionToken": "t",
      "expiration": 4102444800000}})");
  }
  net::CredentialChain chain() {
    Value at;
    const std::string url = server.url("");
    at.set("sso", url).set("oidc", url).set("sts", url).set("metadata", "").set("container", url);
    return aws::key_chain(*loop, at, "us-east-1");
  }
  Result<net::FoundKeys> get() {
    net::CredentialChain keys = chain();
    return run_blocking(*loop, keys.get({}));
  }
};

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(SignIn, "a renewal is written back for the next process") {
  renew = [](const std::string&, Wire& w) { give(w, "new", "refresh-2"); };
  const auto found = get();
  if (!found) FAIL(found.error().message);
  CHECK(found->keys.id == "i");
  CHECK(seen(bearers) == Strings{"new"});
  CHECK(kept().text("accessToken") == "new");
  CHECK(kept().text("refreshToken") == "refresh-2");
  CHECK(kept().text("clientSecret") == "s");
}

TEST_CASE_METHOD(SignIn, "what another program has written meanwhile is newer, and stays") {
  renew = [this](const std::string&, Wire& w) {  // the user signs in again while this renewal is on its way
    write("of another", "refresh-9", "2199-01-01T00:00:00Z");
    give(w, "new", "refresh-2");
  };
  const auto found = get();
  if (!found) FAIL(found.error().message);
  CHECK(seen(bearers) == Strings{"new"});
  CHECK(kept().text("accessToken") == "of another");
  CHECK(kept().text("refreshToken") == "refresh-9");
}

TEST_CASE_METHOD(SignIn, "two that renew at once: one refresh token serves one of them, and both go on") {
  renew = [this](const std::string&, Wire& w) {
    if (renewals.size() == 1) return give(w, "new", "refresh-2");
    for (int i = 0; i < 1'000 && kept().text("accessToken") != "new"; ++i)  // refused once the other has written
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    refuse(w);
  };
  net::CredentialChain first = chain(), second = chain();
  std::vector<Together<net::FoundKeys>> both;
  both.push_back({"one", [&first](CancelToken t) { return first.get(std::move(t)); }});
  both.push_back({"another", [&second](CancelToken t) { return second.get(std::move(t)); }});
  const auto found = run_blocking(*loop, together(*loop, std::move(both), 0, {}));
  for (const auto& one : found)
    if (!one) FAIL(one.error().message);
  CHECK(seen(renewals) == Strings{"refresh-1", "refresh-1"});
  CHECK(seen(bearers) == Strings{"new", "new"});
  CHECK(kept().text("refreshToken") == "refresh-2");
}

TEST_CASE_METHOD(SignIn, "a renewal whose answer was lost has perhaps used its token up: it is not sent again") {
  renew = [](const std::string&, Wire& w) { w.cut(); };
  SECTION("the sign-in is over: that is an error, and the file stays") {
    const auto found = get();
    REQUIRE_FALSE(found);
    CHECK(to_string(found.error().kind) == to_string(ErrorKind::network));
    CHECK(bearers.empty());
  }
  SECTION("it lasts: its token serves") {
    char soon[32];
    const std::time_t ends = std::time(nullptr) + 600;
    std::tm utc{};
    std::strftime(soon, sizeof soon, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&ends, &utc));
    write("old", "refresh-1", soon);
    const auto found = get();
    if (!found) FAIL(found.error().message);
    CHECK(seen(bearers) == Strings{"old"});
  }
  SECTION("another program has had more luck: its token serves") {
    renew = [this](const std::string&, Wire& w) {
      write("of another", "refresh-9", "2199-01-01T00:00:00Z");
      w.cut();
    };
    const auto found = get();
    if (!found) FAIL(found.error().message);
    CHECK(seen(bearers) == Strings{"of another"});
  }
  CHECK(seen(renewals) == Strings{"refresh-1"});
  if (kept().text("accessToken") != "of another") CHECK(kept().text("accessToken") == "old");
}
