// A call that is paid for leaves by its time or not at all (outcome.hpp), by a clock that the test turns.
#include "runtime/core/base/send_by.hpp"
#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/remote/remote.hpp"
#include "runtime/workflow/provider/slurm/slurm.hpp"
#include "runtime/workflow/provider/ssh/ssh.hpp"
#include "tests/unit/lease/cloud.hpp"
#include "tests/unit/net/scripted_server.hpp"

using namespace rille;
using namespace rille::provider;
using net::Effect;
using Request = ScriptedServer::Request;
using Wire = ScriptedServer::Wire;

namespace {

constexpr std::int64_t minute_us = 60'000'000;

struct Late {
  lease::test::FakeClock clock;
  std::unique_ptr<Loop> loop = Loop::create(clock).value();
  const std::int64_t send_by_us = clock.us + minute_us / 2;
  // What takes a minute.
  bool keys = false, connecting = false, answer = false;
  std::vector<int> statuses{200};  // of the answers, one after the other; 0: none
  ScriptedServer server{[this](const Request&, Wire& w) {
    const int status = statuses[std::min(server.count(), statuses.size()) - 1];
    if (status == 0) return w.cut();
    w.answer(status, "{}", "Retry-After: 0\r\n");
  }};
  void pass(bool when) { clock.us += when ? minute_us : 0; }

  Async<std::optional<net::FoundKeys>> find_keys() {
    pass(keys);
    co_return std::optional(net::FoundKeys());
  }
  Result<Value> call(Effect effect) {
    std::vector<net::KeySource> sources{{"a slow program", [this](CancelToken) { return find_keys(); }}};
    net::CredentialChain chain(*loop, "cloud", std::move(sources), "");
    net::ApiOptions options;
    options.provider = "cloud";
    options.throttle_ms = 1;
    options.sign = [this](net::Parts parts, const net::Credentials&, std::int64_t) {
      pass(connecting);  // which comes after the signature
      return parts;
    };
    options.read = [this](const net::HttpResponse&) {
      pass(answer);
      return net::Answer();
    };
    net::Api api(*loop, std::move(options), chain);
    net::Parts parts;
    parts.method = "POST";
    parts.scheme = "http";
    parts.host = server.host();
    parts.path = "/";
    return run_blocking(*loop, api.call("create", std::move(parts), effect, {}));
  }
  void check_late(const Result<Value>& r, std::size_t sent) {
    REQUIRE_FALSE(r);
    INFO(r.error().message);
    CHECK(is_late(r.error()));
    CHECK(r.error().message.starts_with("cloud create: the request was not sent: its latest time for sending was 20"));
    CHECK(r.error().message.ends_with(", 30s ago"));
    CHECK(server.count() == sent);
  }
};

}  // namespace

TEST_CASE_METHOD(Late, "a paid call is held to its time when nothing but the sending is left") {
  SECTION("in time") {
    CHECK(call(Effect::lasting.by(send_by_us)));
    CHECK(server.count() == 1);
  }
  SECTION("the keys took too long") {
    keys = true;
    check_late(call(Effect::lasting.by(send_by_us)), 0);
  }
  SECTION("the name server, a proxy or the handshake did") {
    connecting = true;
    check_late(call(Effect::lasting.by(send_by_us)), 0);
  }
  SECTION("the service asks to wait") {
    answer = true;
    statuses = {429, 200};
    check_late(call(Effect::lasting.by(send_by_us)), 1);
  }
  SECTION("what may be sent again has been sent, and what became of it is not known: that is the answer") {
    answer = true;
    statuses = {503, 200};
    const Result<Value> r = call(Effect::none.by(send_by_us));
    REQUIRE_FALSE(r);
    CHECK(to_string(r.error().kind) == to_string(ErrorKind::network));
    CHECK_FALSE(is_late(r.error()));
    CHECK(server.count() == 1);
  }
  SECTION("other calls have no such time") {
    keys = true;
    CHECK(call(Effect::lasting));
    CHECK(call(Effect::none));
  }
}

TEST_CASE_METHOD(Late, "providers without that way hold to it, too") {
  CreateRequest request;
  request.tag = "rille-0123456789ab-late-g1-x1900000000";
  request.offer.id = "cpu";
  request.send_by_wall_us = clock.us - minute_us;
  lease::test::TempDir dir;
  const auto is_refused = [&](Result<std::unique_ptr<Provider>> made) {
    REQUIRE(made);
    const auto late = run_blocking(*loop, (*made)->create(request, {}));
    REQUIRE_FALSE(late);
    INFO(late.error().message);
    CHECK(is_late(late.error()));
    CHECK(late.error().provider == (*made)->name());
  };
  is_refused(make_remote_provider(*loop, Value().set("url", server.url())));
  CHECK(server.count() == 0);
  const std::string touch = "touch " + dir.path + "/called";
  const Value words = Value::Array{Value("sh"), Value("-c"), Value(touch + "; exit 1")};
  is_refused(make_slurm_provider({*loop, dir.path, dir.path, Value().set("via", words)}));
  Value there;
  there.set("hosts", Value::Array{Value("gpu1")});
  there.set("options", Value::Array{Value("-o"), Value("ProxyCommand=" + touch)});
  request.offer.id = "gpu1";
  is_refused(make_ssh_provider({*loop, dir.path, dir.path, there}));
  CHECK_FALSE(std::filesystem::exists(dir.path + "/called"));
}
