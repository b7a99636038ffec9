// Machines of a run pass an object on to each other: once from the server, also when one is gone, slow, or lies.
#include "runtime/workflow/agent/heard.hpp"
#include "runtime/workflow/agent/peer_link.hpp"
#include "tests/unit/agent/share_fixture.hpp"

using namespace rille;
using namespace rille::agent;
using Request = ScriptedServer::Request;
using Wire = ScriptedServer::Wire;

namespace {

// The other side of a link, which does what a test says.
struct Liar {
  using Lie = std::function<Async<>(PeerLink&, PeerRequest)>;
  Liar(Loop& loop, std::string secret, Lie lie)
      : loop_(loop), key(std::move(secret)), lie_(std::move(lie)),
        listener_(Listener::listen_tcp(loop, "127.0.0.1").value()), address(listener_->address()) {
    loop.spawn(accept(*this));
  }
  ~Liar() { stop_.cancel(make_error(ErrorKind::cancelled, "the test ends")); }
  static Task<void> accept(Liar& self) {
    const CancelToken token = self.stop_.token();
    const std::shared_ptr<Listener> listener = self.listener_;
    while (!token.cancelled()) {
      auto stream = co_await listener->accept(token);
      if (!stream || token.cancelled()) co_return;
      self.loop_.spawn(serve(self, std::move(*stream), token));
    }
  }
  static Task<void> serve(Liar& self, std::unique_ptr<Stream> stream, CancelToken token) {
    const Lie lie = self.lie_;
    const std::function<std::string(std::string_view)> find = [secret = self.key](std::string_view) { return secret; };
    auto link = co_await PeerLink::accept(std::move(stream), find, token);
    while (link) {
      const auto message = co_await (*link)->read_message(token);
      if (!message || token.cancelled()) co_return;
      const PeerRequest asked = peer_request_from(*message).value();
      if (!co_await lie(**link, asked)) co_return;
    }
  }

  Loop& loop_;
  std::string key;
  Lie lie_;
  std::shared_ptr<Listener> listener_;
  CancelSource stop_;
  std::string address;
};

Async<> send(PeerLink& link, std::string bytes) { co_return co_await link.write(bytes, {}); }
std::string head(PeerAnswer::Kind kind, std::int64_t got = 0) { return encode_peer(PeerAnswer{kind, got}); }
Error enough() { return make_error(ErrorKind::network, "it hangs up"); }

PartDigests digests_of(const std::string& content, std::int64_t part_bytes) {
  PartDigests out;
  for (std::size_t at = 0; at * static_cast<std::size_t>(part_bytes) < content.size(); ++at) {
    const Digest digest =
        sha256(content.substr(at * static_cast<std::size_t>(part_bytes), static_cast<std::size_t>(part_bytes)));
    out[at] = std::string(digest.begin(), digest.end());
  }
  return out;
}

}  // namespace

TEST_CASE_METHOD(ShareFixture, "eight machines get each part of an object once from the server") {
  ScriptedServer server(honest());
  std::vector<std::vector<std::string>> before;
  for (int i = 0; i < 8; ++i) before.push_back(machine().addresses);
  for (std::size_t i = 8; i-- > 0;) {  // the last ones first: they wait for those that they ask
    std::vector<std::vector<std::string>> ask;
    for (std::size_t at = i; at > 0;) ask.push_back(before[at = (at - 1) / 2]);
    begin(*machines[i], server.url(), ask);
  }
  for (const auto& m : machines) {
    finish(*m);
    CHECK(read(file_of(*m)) == content);
    CHECK((*m->pulled)->moved_bytes + (*m->pulled)->shared_bytes == 105'000);
  }
  CHECK(ranges(server).size() == 11);
  for (const auto& [range, times] : ranges(server)) CHECK(times == 1);
  CHECK(digests == digests_of(content, part_bytes));
  CHECK(machines[0]->told.size() == 12);  // each part's digest once, and what the server said of the object
  CHECK((*machines[7]->pulled)->moved_bytes == 0);

  auto& late = machine();  // when all have it
  pull_on(late, server.url(), {before[3], before[1], before[0]});
  CHECK(read(file_of(late)) == content);
  CHECK(server.count() == 11);
}

TEST_CASE_METHOD(ShareFixture, "an object of one part, and one that is here already, are passed on, too") {
  ScriptedServer server(honest());
  content = noise(7'000), request.size_bytes = 7'000;
  auto& first = machine();
  pull_on(first, server.url(), {});
  auto& second = machine();
  pull_on(second, server.url(), {first.addresses});
  CHECK(read(file_of(second)) == content);
  first.share = std::make_shared<Share>(*loop, std::string(32, 'c'), key, part_bytes);  // of a later stage
  id = std::string(32, 'c');
  first.peers->add(first.share);
  first.share->to_runner = [this, &first](Value value) { hear(first, std::move(value)); };
  digests.clear();
  pull_on(first, server.url(), {});
  auto& third = machine();
  pull_on(third, server.url(), {first.addresses});
  CHECK(read(file_of(third)) == content);
  CHECK(server.count() == 1);
}

TEST_CASE_METHOD(ShareFixture, "when the machine that gives ends in the middle, the others have the right bytes") {
  limits.meet_ms = 60'000;  // also where other tests take the processors
  std::atomic<int> answers = 0;
  std::atomic<bool> holds = true;
  ScriptedServer server([&](const Request& r, Wire& w) {
    if (++answers > 5 && holds) w.hold();
    else serve(r, w);
  });
  auto& root = machine();
  auto& middle = machine();
  auto& leaf = machine();
  begin(root, server.url(), {});
  begin(middle, server.url(), {root.addresses});
  begin(leaf, server.url(), {middle.addresses, root.addresses});
  REQUIRE(eventually([&] { return leaf.share->got_bytes() >= 5 * part_bytes; }));
  holds = false;
  root.stop.cancel(make_error(ErrorKind::cancelled, "its agent is killed"));
  root.peers->close();
  finish(middle);
  finish(leaf);
  CHECK(read(file_of(middle)) == content);
  CHECK(read(file_of(leaf)) == content);
  CHECK((*middle.pulled)->shared_bytes >= 5 * part_bytes);
  CHECK((*leaf.pulled)->shared_bytes >= 5 * part_bytes);
  CHECK((*middle.pulled)->liars.empty());
}

TEST_CASE_METHOD(ShareFixture, "no lie of another machine is installed: the part comes from the server") {
  limits.silence_ms = 300, limits.meet_ms = 300, limits.digest_ms = 300;
  using Kind = PeerAnswer::Kind;
  const Future<Result<>> never(*loop);
  const std::string wrong = noise(20'000).substr(10'000 - 7);
  const std::map<std::string, Liar::Lie> lies = {
      {"other bytes", [&](PeerLink& l, PeerRequest) { return send(l, head(Kind::bytes) + wrong.substr(0, 10'000)); }},
      {"a part of them",
       [&](PeerLink& l, PeerRequest) -> Async<> {
         RILLE_CO_CHECK(co_await send(l, head(Kind::bytes) + content.substr(0, 5'000)));
         co_return enough();
       }},
      {"silence", [&](PeerLink&, PeerRequest) -> Async<> { co_return co_await never; }},
      {"silence in the middle",
       [&](PeerLink& l, PeerRequest) -> Async<> {
         RILLE_CO_CHECK(co_await send(l, head(Kind::bytes) + content.substr(0, 5'000)));
         co_return co_await never;
       }},
      {"promises",
       [&](PeerLink& l, PeerRequest) -> Async<> {
         for (int i = 0; i < 1'000; ++i) {
           RILLE_CO_CHECK(co_await send(l, head(Kind::waits, i)));
           RILLE_CO_CHECK(co_await sleep_for(*loop, 10));
         }
         co_return enough();
       }},
      {"no message", [&](PeerLink& l, PeerRequest) { return send(l, std::string(40, '\xff')); }},
      {"gone", [&](PeerLink& l, PeerRequest) { return send(l, head(Kind::gone)); }},
      {"the end", [&](PeerLink&, PeerRequest) -> Async<> { co_return enough(); }},
  };
  for (const auto& [name, lie] : lies) {
    INFO(name);
    ScriptedServer server(honest());
    Liar liar(*loop, key, lie);
    auto& m = machine();
    m.share->tell(digests_of(content, part_bytes));
    pull_on(m, server.url(), {{liar.address}});
    CHECK(read(file_of(m)) == content);
    CHECK((*m.pulled)->moved_bytes == 105'000);
    CHECK((*m.pulled)->liars == (name == "other bytes" ? std::vector<int>{0} : std::vector<int>()));
    for (const auto& [range, times] : ranges(server)) CHECK(times == 1);
  }
}

TEST_CASE_METHOD(ShareFixture, "machines that lie at random do no harm") {
  limits.silence_ms = 300, limits.meet_ms = 300, limits.digest_ms = 300;
  using Kind = PeerAnswer::Kind;
  ScriptedServer server(honest());
  std::uint64_t state = 20261128;
  const auto below = [&state](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  const Liar::Lie lie = [&](PeerLink& l, PeerRequest r) -> Async<> {
    const auto size = static_cast<std::size_t>(r.end - r.begin);
    const std::string right = content.substr(static_cast<std::size_t>(r.begin), size);
    for (;;) {
      std::string said;
      const std::uint64_t kind = below(8);
      if (kind == 0) said = head(Kind::waits, static_cast<std::int64_t>(below(200'000)));
      if (kind == 1) said = head(Kind::gone);
      if (kind == 2) said = head(Kind::bytes) + noise(size + 3).substr(3);
      if (kind == 3) said = head(Kind::bytes) + right.substr(0, below(size));
      if (kind == 4) said = std::string(below(60), static_cast<char>(below(256)));
      if (kind > 4) said = head(Kind::bytes) + right;
      RILLE_CO_CHECK(co_await send(l, said));
      if (kind > 0 && below(2)) co_return success();
      if (below(4) == 0) co_return enough();
    }
  };
  Liar one(*loop, key, lie), other(*loop, key, lie);
  for (int i = 0; i < 30; ++i) {
    auto& m = machine();
    m.share->tell(digests_of(content, part_bytes));
    pull_on(m, server.url(), {{one.address}, {other.address}});
    CHECK(read(file_of(m)) == content);
    CHECK((*m.pulled)->moved_bytes + (*m.pulled)->shared_bytes == 105'000);
  }
}

TEST_CASE_METHOD(ShareFixture, "a machine that is not reached, or does not prove the key, gives nothing") {
  limits.meet_ms = 300;
  ScriptedServer server(honest());
  std::string heard;
  Liar stranger(*loop, std::string(64, 'c'), [&](PeerLink&, PeerRequest) -> Async<> {
    heard = "a request";
    co_return success();
  });
  const std::string nobody = Listener::listen_tcp(*loop, "127.0.0.1").value()->address();
  digests = digests_of(content, part_bytes);
  auto& giver = machine();
  pull_on(giver, server.url(), {{stranger.address}, {nobody}});
  CHECK(read(file_of(giver)) == content);
  CHECK(heard.empty());
  // The other way round, a stranger gets nothing, and does not disturb.
  auto refused = wait(PeerLink::connect(*loop, giver.addresses[0], id, std::string(64, 'c'), {}));
  CHECK_FALSE(refused.ok());
  refused = wait(PeerLink::connect(*loop, giver.addresses[0], std::string(32, 'f'), key, {}));
  CHECK_FALSE(refused.ok());
  auto& taker = machine();
  const std::size_t asked = server.count();
  pull_on(taker, server.url(), {{nobody}, giver.addresses});
  CHECK(read(file_of(taker)) == content);
  CHECK(server.count() == asked);
}

TEST_CASE_METHOD(ShareFixture, "digests that were lies, too, are found by the digest of the whole") {
  const std::string wrong = noise(120'000).substr(15'000);
  ScriptedServer server(honest());
  Liar liar(*loop, key, [&](PeerLink& l, PeerRequest r) {
    const auto size = static_cast<std::size_t>(r.end - r.begin);
    return send(l, head(PeerAnswer::Kind::bytes) + wrong.substr(static_cast<std::size_t>(r.begin), size));
  });
  request.sha256 = sha();
  auto& m = machine();
  m.share->tell(digests_of(wrong, part_bytes));
  pull_on(m, server.url(), {{liar.address}});
  CHECK(read(file_of(m)) == content);
  CHECK((*m.pulled)->moved_bytes == 105'000);
}

TEST_CASE_METHOD(ShareFixture, "when machines disagree, nothing of what came from them is kept") {
  const std::string wrong = noise(120'000).substr(15'000);
  ScriptedServer server(honest());
  auto& m = machine();
  Liar liar(*loop, key, [&](PeerLink& l, PeerRequest r) {
    if (r.begin == 5 * part_bytes) m.share->dispute();  // as the runner says when an honest machine contradicts
    const auto size = static_cast<std::size_t>(r.end - r.begin);
    return send(l, head(PeerAnswer::Kind::bytes) + wrong.substr(static_cast<std::size_t>(r.begin), size));
  });
  request.parallel = 2;
  m.share->tell(digests_of(wrong, part_bytes));
  pull_on(m, server.url(), {{liar.address}});
  CHECK(read(file_of(m)) == content);
  CHECK((*m.pulled)->moved_bytes == 105'000);

  // An honest machine contradicts a digest that is not that of its bytes as soon as it is asked.
  auto& giver = machine();
  pull_on(giver, server.url(), {});
  digests = digests_of(wrong, part_bytes);
  for (const auto& each : machines) each->share->tell(digests);
  auto& taker = machine();
  taker.share->tell(digests);
  pull_on(taker, server.url(), {giver.addresses});
  CHECK(taker.share->disputed());
  CHECK(read(file_of(taker)) == content);
}

TEST_CASE_METHOD(ShareFixture, "a file that a program of the machine has changed is not passed on") {
  ScriptedServer server(honest());
  auto& giver = machine();
  pull_on(giver, server.url(), {});
  REQUIRE(eventually([&] { return giver.share->places().size() == 2; }));  // the cache has a copy
  write(file_of(giver), noise(105'001).substr(1));
  auto& taker = machine();
  pull_on(taker, server.url(), {giver.addresses});
  CHECK(read(file_of(taker)) == content);
  CHECK(server.count() == 11);  // the giver's cache gave it

  std::filesystem::remove_all(std::filesystem::path(giver.directory).parent_path() /
                              (".rille-cache-" + std::to_string(::geteuid())));
  auto& last = machine();
  pull_on(last, server.url(), {giver.addresses});
  CHECK(read(file_of(last)) == content);
  CHECK(server.count() == 22);
  CHECK((*last.pulled)->liars.empty());
}

TEST_CASE("what is said about shares is read or refused") {
  const auto news = [](const std::string& json) { return share_news_from(Value::from_json(json).value()); };
  const auto told = news(R"({"addresses":["10.0.0.1:40000","[fd00::1]:40000","127.0.0.1:40000","8.8.8.8:40000",
                          "169.254.169.254:80","10.0.0.1:22","10.0.0.1","example.org:40000",7]})");
  REQUIRE(told);
  CHECK(told->addresses == std::vector<std::string>{"10.0.0.1:40000", "[fd00::1]:40000"});
  const std::string share = R"("share":"x",)", digest = R"("sha256":")" + std::string(64, '0') + "\"";
  CHECK(news("{" + share + R"("part":3,)" + digest + "}")->part == 3);
  for (const char* part : {"-1", "65536", "1e300", "\"3\""})
    CHECK_FALSE(news("{" + share + R"("part":)" + part + R"(,"sha256":"x"})").ok());
  CHECK_FALSE(news("{" + share + R"("part":3,"sha256":"../x"})").ok());
  CHECK(news("{" + share + R"("size":7,"version":"\"v\""})")->version == "\"v\"");
  CHECK(news("{" + share + R"("size":7,"version":"W/\"v\""})")->version.empty());
  CHECK(news("{" + share + R"("size":7,"version":"\"v\u0000\""})")->version.empty());
  CHECK_FALSE(news("{" + share + R"("size":-7})").ok());

  const PartDigests some = {{0, std::string(32, 'x')}, {70'000 % 65'536, std::string(32, '\0')}};
  CHECK(digests_from(encode_digests(some)).value() == some);
  CHECK_FALSE(digests_from(encode_digests(some).substr(1)).ok());
  CHECK_FALSE(digests_from(encode_digests({{65'536, std::string(32, 'x')}})).ok());
}
