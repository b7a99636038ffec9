#include "runtime/core/net/credentials/alibaba/keys.hpp"

#include <catch2/catch.hpp>

#include "runtime/core/net/credentials/gcp/federation.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"

using namespace rille;
using namespace rille::net;
using net::CredentialChain;
using net::FoundKeys;

namespace {

constexpr std::int64_t minute_us = 60'000'000, hour_us = 60 * minute_us;

struct TurnedClock final : Clock {
  std::int64_t wall = 1'000 * hour_us;
  std::int64_t wall_us() const override { return wall; }
  std::int64_t monotonic_ns() const override { return system_clock().monotonic_ns(); }
};

// A source that lends keys for an hour, or what the test says.
struct Lender {
  TurnedClock clock;
  std::unique_ptr<Loop> loop = Loop::create(clock).value();
  int asked = 0;
  std::int64_t lasts_us = hour_us;
  std::optional<Error> failing;
  std::optional<Future<bool>> door;  // it answers when this is set

  Async<std::optional<FoundKeys>> lend(CancelToken token) {
    const int mine = ++asked;
    if (door) {
      const Future<bool> closed = *door;
      const auto stop = token.on_cancel([closed](const Error&) { closed.set(false); });
      co_await closed;
      if (token.cancelled()) co_return token.reason();
    }
    if (failing) co_return *failing;
    FoundKeys found;
    found.keys.id = "k" + std::to_string(mine);
    if (lasts_us > 0) found.expires_wall_us = clock.wall_us() + lasts_us;
    co_return found;
  }
  net::KeySource source() {
    return {"the lender", [this](CancelToken t) { return lend(std::move(t)); }};
  }
  CredentialChain chain() {
    std::vector<net::KeySource> sources{source()};
    return {*loop, "cloud", std::move(sources), "lend some"};
  }
  Result<FoundKeys> get(CredentialChain& from) { return run_blocking(*loop, from.get({})); }
};

net::KeySource nothing(std::string name) {
  return {std::move(name),
          [](CancelToken) -> Async<std::optional<FoundKeys>> { co_return std::optional<FoundKeys>(); }};
}

Value json(const char* text) { return Value::from_json(text).value(); }

}  // namespace

TEST_CASE_METHOD(Lender, "keys that expire are renewed before their end, keys without an end are kept") {
  CredentialChain keys = chain();
  CHECK(get(keys)->keys.id == "k1");
  clock.wall += 54 * minute_us;
  CHECK(get(keys)->keys.id == "k1");
  clock.wall += 2 * minute_us;
  CHECK(get(keys)->keys.id == "k2");
  lasts_us = 4 * minute_us;  // a short time is not all margin
  keys.forget();
  CHECK(get(keys)->keys.id == "k3");
  clock.wall += 2 * minute_us;
  CHECK(get(keys)->keys.id == "k3");
  clock.wall += minute_us + 1;
  CHECK(get(keys)->keys.id == "k4");
  lasts_us = 0;
  keys.forget();
  CHECK(get(keys)->keys.id == "k5");
  clock.wall += 1'000 * hour_us;
  CHECK(get(keys)->keys.id == "k5");
}

TEST_CASE_METHOD(Lender, "while a renewal fails, what was found serves to its end, and no call asks in vain") {
  CredentialChain keys = chain();
  REQUIRE(get(keys));
  failing = make_error(ErrorKind::network, "nobody answers");
  clock.wall += 56 * minute_us;
  CHECK(get(keys)->keys.id == "k1");
  CHECK(get(keys)->keys.id == "k1");
  CHECK(asked == 2);
  clock.wall += minute_us;
  CHECK(get(keys)->keys.id == "k1");
  CHECK(asked == 3);
  clock.wall += 3 * minute_us;
  const Result<FoundKeys> over = get(keys);
  REQUIRE_FALSE(over);
  CHECK(over.error().kind == ErrorKind::network);
  failing.reset();
  CHECK(get(keys)->keys.id == "k5");
}

TEST_CASE_METHOD(Lender, "calls at the same time ask once; one that is cancelled leaves it to the next") {
  CredentialChain keys = chain();
  door.emplace(*loop);
  std::vector<Result<FoundKeys>> got;
  const auto ask = [](CredentialChain& from, CancelToken token, std::vector<Result<FoundKeys>>& out) -> Task<void> {
    out.push_back(co_await from.get(token));
  };
  CancelSource first, second;
  loop->spawn(ask(keys, first.token(), got));
  loop->spawn(ask(keys, second.token(), got));
  loop->spawn(ask(keys, {}, got));
  loop->run_until([&] { return asked == 1; });
  second.cancel(make_error(ErrorKind::cancelled, "enough"));
  loop->run_until([&] { return got.size() == 1; });
  CHECK(got[0].error().kind == ErrorKind::cancelled);
  door.emplace(*loop);
  first.cancel(make_error(ErrorKind::cancelled, "enough"));
  loop->run_until([&] { return got.size() == 2 && asked == 2; });
  CHECK_FALSE(got[1]);
  door->set(true);
  loop->run_until([&] { return got.size() == 3; });
  CHECK(got[2]->keys.id == "k2");
  CHECK(asked == 2);

  keys.forget();
  door.reset();
  failing = make_error(ErrorKind::auth, "no");
  got.clear();
  for (int i = 0; i < 3; ++i) loop->spawn(ask(keys, {}, got));
  loop->run_until([&] { return got.size() == 3; });
  for (const Result<FoundKeys>& one : got) CHECK(one.error().message == "no");
}

TEST_CASE_METHOD(Lender, "without credentials the error lists the sources asked, in order, and what to do") {
  std::vector<net::KeySource> sources{nothing("A_KEY"), nothing("~/.cloud/keys")};
  CredentialChain none(*loop, "cloud", std::move(sources), "set A_KEY");
  const Result<FoundKeys> got = get(none);
  REQUIRE_FALSE(got);
  CHECK(got.error().kind == ErrorKind::auth);
  CHECK(got.error().message == "there are no credentials for cloud: none were found in A_KEY, ~/.cloud/keys");
  CHECK(got.error().hint == "set A_KEY");
  sources = {nothing("A_KEY"), source(), nothing("never")};
  CredentialChain broken(*loop, "cloud", std::move(sources), "");
  failing = make_error(ErrorKind::auth, "the lender says no", "ask kindly");
  const Result<FoundKeys> refused = get(broken);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "the lender says no (nothing in A_KEY)");
  CHECK(refused.error().hint == "ask kindly");
  CHECK(refused.error().provider == "cloud");
}

TEST_CASE("INI files: sections, comments, values with signs in them") {
  net::Ini ini = net::parse_ini("a = 1\n[profile work]\r\n key=inside\nkey = x=y\n; off = 1\n[ sso-session s ]\nb=\n[");
  CHECK(ini[""]["a"] == "1");
  CHECK(ini["work"] == std::map<std::string, std::string>{{"key", "x=y"}});
  CHECK(ini["sso-session s"] == std::map<std::string, std::string>{{"b", ""}});
  CHECK(ini.size() == 3);
}

TEST_CASE("documents with keys: their names, and times of two kinds") {
  constexpr net::KeyNames names{"Id", "Key", "Token", "End"};
  const Value document = json(R"({"Id": "i", "Key": "k", "Token": "t", "End": "2030-01-01T00:00:00.5Z"})");
  const auto all = net::read_keys(document, names, "there");
  REQUIRE(all);
  CHECK(all->keys.id + all->keys.secret + all->keys.token + all->from == "iktthere");
  CHECK(all->expires_wall_us == 1'893'456'000'500'000);
  CHECK(net::read_keys(json(R"({"Id": "i", "Key": "k", "End": 1893456000})"), names, "")->expires_wall_us ==
        1'893'456'000'000'000);
  CHECK(net::read_keys(json(R"({"Id": "i", "Key": "k"})"), names, "")->expires_wall_us == 0);
  for (const Value& end : {Value("soon"), Value(1e300), Value(-1)})
    CHECK_FALSE(net::read_keys(Value().set("Id", "i").set("Key", "k").set("End", end), names, ""));
  const auto none = net::read_keys(json(R"({"Code": "Denied", "Id": "i"})"), names, "the machine");
  REQUIRE_FALSE(none);
  CHECK(none.error().message == "the machine has no keys: Denied");
  CHECK_FALSE(net::read_keys(json("[]"), names, "x"));
}

TEST_CASE("an error of a service that lends keys has none of the secrets that it was sent, wherever they stand") {
  Error e = make_error(ErrorKind::auth, "the token word-1 is over: word-1", "ask anew with word-12 and hush");
  const Error cause = make_error(ErrorKind::network, "GET /?token=hush", "word-1");
  const Error shown = net::without_secrets(std::move(e).with_cause(cause), {"word-1", "", "hush", "word-12"});
  CHECK(shown.message == "the token *** is over: ***");
  CHECK(shown.hint == "ask anew with *** and ***");
  REQUIRE(shown.cause);
  CHECK(shown.cause->message == "GET /?token=***");
  CHECK(shown.cause->hint == "***");
}

TEST_CASE("profiles of the aliyun command and of Alibaba's SDKs") {
  const Value config = json(R"({"current": "b", "profiles": [{"name": "a", "mode": "AK", "access_key_id": "i",
    "access_key_secret": "s", "sts_token": "old"}, {"name": "b", "mode": "RamRoleArn", "ram_role_arn": "r",
    "ram_session_name": "me", "expired_seconds": 900, "access_key_id": "j", "access_key_secret": "s"}, 7]})");
  const auto current = alibaba::profile_in(config, "");
  REQUIRE(current);
  CHECK(current->mode == "RamRoleArn");
  CHECK(current->role == "r");
  CHECK(current->lasts_s == 900);
  CHECK(current->keys.id == "j");
  CHECK(alibaba::profile_in(config, "a")->keys.token.empty());  // a lasting key has none, whatever is left over
  CHECK_FALSE(alibaba::profile_in(config, "c"));
  CHECK_FALSE(alibaba::profile_in(json("{}"), "a"));
  CHECK(alibaba::profile_of_section({{"access_key_id", "i"}, {"sts_token", "t"}}).keys.token == "t");
  CHECK(alibaba::profile_of_section({{"type", "ecs_ram_role"}, {"role_name", "m"}}).machine_role == "m");
  CHECK(alibaba::profile_of_section({{"type", "bearer"}}).mode == "bearer");
}

TEST_CASE("the token of an identity provider: as text, or in a field") {
  const Value text = Value(), field = json(R"({"type": "json", "subject_token_field_name": "value"})");
  CHECK(gcp::subject_token_in("abc\n", text, "f").value() == "abc");
  CHECK(gcp::subject_token_in(R"({"value": "abc"})", field, "f").value() == "abc");
  for (const char* bad : {"", "{}", "abc", R"({"value": 1})"}) CHECK_FALSE(gcp::subject_token_in(bad, field, "f"));
  CHECK_FALSE(gcp::subject_token_in("\n", text, "f"));
  const std::string url = "https://iam.example/v1/projects/-/serviceAccounts/me@p.example:generateAccessToken";
  CHECK(gcp::account_of(Value().set("service_account_impersonation_url", url)) == "me@p.example");
  CHECK(gcp::account_of(Value().set("client_email", "a@b")) == "a@b");
  CHECK(gcp::account_of(Value()) == "");
}
