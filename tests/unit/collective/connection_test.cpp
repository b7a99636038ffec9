// What the network between ranks may do: strangers, recordings, altered bytes. All of it by hand, on sockets.
#include <fcntl.h>
#include <linux/sockios.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "ranks.hpp"
#include "runtime/compute/collective/acceptor.hpp"
#include "runtime/compute/collective/link.hpp"
#include "runtime/compute/collective/mesh.hpp"

namespace rille::collective {
namespace {

struct Pair {
  Fd a, b;
  Pair() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    a = Fd(fds[0]);
    b = Fd(fds[1]);
  }
};

struct Ends {
  Pair pair;
  Connection client, server;
  Ends(const std::string& token, const std::string& other)
      : client(std::move(pair.a), Connection::Side::connects, token),
        server(std::move(pair.b), Connection::Side::accepts, other) {}
  // The first error, or none when both have proven the token.
  std::vector<Result<bool>> meet() {
    for (;;) {
      std::vector<Result<bool>> done{client.shake_hands(), server.shake_hands()};
      if (!done[0] || !done[1]) return {client.shake_hands(), std::move(done[1])};
      if (*done[0] && *done[1]) return done;
    }
  }
};

std::string bytes_from(int fd) {
  char buffer[1 << 16];
  const auto n = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
  return n > 0 ? std::string(buffer, std::size_t(n)) : std::string();
}

void give(int fd, std::string_view bytes) { REQUIRE(::write(fd, bytes.data(), bytes.size()) == long(bytes.size())); }

// Moves bytes both ways between a client and a server that have a wire between them; keeps what the client sent.
struct Wire {
  Pair left, right;
  Connection client, server;
  std::string from_client;
  explicit Wire(const std::string& token)
      : client(std::move(left.a), Connection::Side::connects, token),
        server(std::move(right.a), Connection::Side::accepts, token) {}
  void carry() {
    const auto there = bytes_from(left.b.get()), back = bytes_from(right.b.get());
    from_client += there;
    give(right.b.get(), there);
    give(left.b.get(), back);
  }
  void meet() {
    for (bool done = false; !done; carry()) {
      const bool client_done = get(client.shake_hands());
      done = get(server.shake_hands()) && client_done;
    }
  }
};

TEST_CASE("both sides prove the token", "[collective]") {
  for (const std::string token : {"", "open sesame"}) {
    Ends ends(token, token);
    for (auto& done : ends.meet()) CHECK(get(std::move(done)));
  }
  Ends ends("open sesame", "open barley");
  for (const auto& done : ends.meet()) {
    REQUIRE(!done);
    CHECK(done.error().kind == ErrorKind::auth);
  }
}

// A TLS server with a certificate of its own making, and without the key.
struct Impostor {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL* ssl = nullptr;
  explicit Impostor(int fd) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    REQUIRE(X509_sign(certificate, key, EVP_sha256()) > 0);
    REQUIRE(SSL_CTX_use_certificate(context, certificate) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(context, key) == 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
  }
  ~Impostor() {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
};

TEST_CASE("a certificate does not replace the token", "[collective]") {
  Pair pair;
  const Impostor impostor(pair.b.get());
  Connection client(std::move(pair.a), Connection::Side::connects, "open sesame");
  auto done = client.shake_hands();
  for (int i = 0; i < 10 && done && !*done; ++i) {
    SSL_accept(impostor.ssl);
    done = client.shake_hands();
  }
  REQUIRE(!done);
  CHECK(done.error().kind == ErrorKind::auth);
  CHECK(done.error().message == "the token was not proven (certificate verify failed)");
}

TEST_CASE("a recorded connection proves nothing", "[collective]") {
  Wire wire("open sesame");
  wire.meet();
  const Stop stop;
  get(wire.client.send(Value().set("rank", 1), Limit(10'000, stop)));
  wire.carry();
  CHECK(get(wire.server.receive_some())->integer("rank") == 1);
  Pair pair;
  Connection server(std::move(pair.a), Connection::Side::accepts, "open sesame");
  give(pair.b.get(), wire.from_client);
  auto done = server.shake_hands();
  while (done && !*done && ::recv(server.fd(), &pair, 1, MSG_PEEK | MSG_DONTWAIT) > 0) done = server.shake_hands();
  REQUIRE(!done);
  CHECK(done.error().kind == ErrorKind::auth);
}

TEST_CASE("an altered bit is an error, and no message", "[collective]") {
  Wire wire("");
  wire.meet();
  const Stop stop;
  get(wire.client.send(Value().set("rank", 1), Limit(10'000, stop)));
  auto bytes = bytes_from(wire.left.b.get());
  bytes[bytes.size() / 2] ^= 4;
  give(wire.right.b.get(), bytes);
  const auto got = wire.server.receive_some();
  REQUIRE(!got);
  CHECK(got.error().kind == ErrorKind::integrity);
}

TEST_CASE("bytes go both ways at once, in many records, with keys that change", "[collective]") {
  Ends ends("", "");
  ends.meet();
  ends.server.gather();
  std::string sent(3'000'000, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = char(i * i >> 7);
  std::string got[2];
  std::size_t at[2] = {};
  Connection* const sides[] = {&ends.client, &ends.server};
  while (got[0].size() < sent.size() || got[1].size() < sent.size()) {
    for (int k = 0; k < 2; ++k) {
      std::size_t n = 0;
      while (at[k] < sent.size() && (n = get(sides[k]->write_some(sent.data() + at[k], sent.size() - at[k]))) > 0) {
        at[k] += n;
        if (at[k] % 5 == 0) sides[k]->change_keys();
      }
      get(sides[k]->flush_some());
      char buffer[5000];
      while ((n = get(sides[k]->read_some(buffer, sizeof buffer))) > 0) got[k].append(buffer, n);
    }
  }
  CHECK((got[0] == sent && got[1] == sent));
}

TEST_CASE("a message that waits for room is neither lost nor mixed with a bell", "[collective]") {
  Ends ends("", "");
  ends.meet();
  const Stop stop;
  const Value message = Value().set("text", std::string(100'000, 'x'));
  int sent = 0;
  for (bool room = true; room; ++sent) room = ends.client.send(message, Limit(0, stop)).ok();
  ends.client.ring();
  for (int left = sent; left > 0;) {
    ends.client.ring();  // goes on with what waits
    const auto got = get(ends.server.receive_some());
    if (!got || got->is_null()) continue;
    CHECK(got->text("text").size() == 100'000);
    --left;
  }
}

TEST_CASE("strangers that say nothing make room", "[collective]") {
  const auto address = free_address();
  const auto one = options_of(1, 2, address);
  auto first = std::async(std::launch::async,
                          [&] { return Communicator::create(options_of(0, 2, address), std::make_shared<Stop>()); });
  const Stop stop;
  const Limit limit(10'000, stop);
  std::vector<Fd> strangers;
  for (int i = 0; i < 150; ++i) strangers.push_back(get(connect_to(get(parse_address(address)), limit)));
  get(limit.wait(strangers[0].get(), POLLIN));  // rank 0 hangs up
  char byte;
  CHECK(::recv(strangers[0].get(), &byte, 1, 0) == 0);
  const auto second = Communicator::create(one, std::make_shared<Stop>());
  CHECK((second.ok() && first.get().ok()));
}

TEST_CASE("a stranger has a time limit", "[collective]") {
  const Fd listener = get(listen_at({"127.0.0.1", 0}));
  Acceptor acceptor(listener.get(), "", 2, 1);
  Stop stop;
  const Limit limit(10'000, stop);
  auto waits = std::async(std::launch::async, [&] { return acceptor.next(limit); });
  const Fd stranger = get(connect_to(local_address(listener.get()), limit));
  get(limit.wait(stranger.get(), POLLIN));
  char byte;
  CHECK(::recv(stranger.get(), &byte, 1, 0) == 0);
  stop.now(make_error(ErrorKind::cancelled, "enough"));
  CHECK(waits.get().error().message == "enough");
  CHECK(acceptor.strangers() ==
        "a connection from " + to_string(local_address(stranger.get())) + " did not prove the token");
}

// Two ends of one connection.
struct Both {
  std::unique_ptr<Connection> mine, theirs;
  Both() {
    Pair pair;
    mine = std::make_unique<Connection>(std::move(pair.a), Connection::Side::connects, "");
    theirs = std::make_unique<Connection>(std::move(pair.b), Connection::Side::accepts, "");
    for (bool done = false; !done;) {
      const bool half = get(mine->shake_hands());
      done = get(theirs->shake_hands()) && half;
    }
  }
};

// A network may deliver the two connections of a rank in any order.
TEST_CASE("what a rank sent before it left may arrive after its word", "[collective]") {
  Both control, data;
  Meeting meeting;
  meeting.peers.resize(2);
  meeting.peers[1].control = std::move(control.mine);
  meeting.peers[1].data = std::move(data.mine);
  const auto mesh = get(Mesh::create(std::move(meeting), 0, false, 20'000, std::make_shared<Stop>()));
  std::string got(5, '-');
  get(mesh->begin("a test"));
  mesh->receive(1, got.data(), got.size());
  auto waits = std::async(std::launch::async, [&] { return mesh->turn_until_done(); });
  const Stop stop;
  get(control.theirs->send(Value().set("left", true), Limit(10'000, stop)));
  for (int unread = 1; unread > 0; ::ioctl(control.theirs->fd(), SIOCOUTQ, &unread)) std::this_thread::yield();
  SECTION("it arrives") {
    CHECK(get(data.theirs->write_some("hello", 5)) == 5);
    get(waits.get());
    CHECK(got == "hello");
  }
  SECTION("it was never sent") {
    data.theirs.reset();
    const auto ended = waits.get();
    REQUIRE(!ended);
    CHECK(ended.error().message == "rank 1 is gone during a test of rank 0: it has closed its communicator");
  }
}

TEST_CASE("an address that never answers leaves time for the next one", "[collective]") {
  const Stop stop;
  const Fd silent = get(listen_at({"127.0.0.2", 0}));
  REQUIRE(::listen(silent.get(), 0) == 0);
  const Limit limit(20'000, stop);
  std::vector<Fd> guests;  // until the queue is full and the system drops new connections
  while (auto guest = connect_to(local_address(silent.get()), Limit(300, stop))) guests.push_back(std::move(*guest));
  const Fd listener = get(listen_at({"127.0.0.1", 0}));
  const Address both[] = {local_address(silent.get()), local_address(listener.get())};
  const Fd connected = get(connect_to_one_of(both, limit));
  CHECK(to_string(remote_address(connected.get())) == to_string(both[1]));
}

// A rank could shrink memory that is not sealed, and so end the other by SIGBUS.
TEST_CASE("memory that the other rank can shrink is not taken", "[collective]") {
  const auto waiting = [](Both& control) {
    Meeting meeting;
    meeting.peers.resize(2);
    meeting.peers[1].control = std::move(control.mine);
    meeting.peers[1].same_host = true;
    return meeting;
  };
  const Stop stop;
  Both honest, evil;
  auto offers = std::async(std::launch::async, [&, meeting = waiting(honest)]() mutable {
    return get(share_memory(meeting, 0, Limit(10'000, stop)));
  });
  const Value words = get(honest.theirs->receive(Limit(10'000, stop)))["share"];
  struct stat sealed {};
  REQUIRE(::fstat(int(words.integer("descriptor")), &sealed) == 0);
  get(honest.theirs->send(Value().set("shared", false), Limit(10'000, stop)));
  offers.get();

  const bool seal = GENERATE(false, true);
  const Fd memory(::memfd_create("a test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(memory.get(), sealed.st_size) == 0);
  const std::string nonce(32, 'n');
  REQUIRE(::pwrite(memory.get(), nonce.data(), nonce.size(), 0) == 32);
  if (seal) REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  Meeting meeting;
  meeting.peers.resize(2);
  meeting.peers[0].control = std::move(evil.mine);
  meeting.peers[0].same_host = true;
  const Value share =
      Value().set("process", std::int64_t(::getpid())).set("descriptor", memory.get()).set("nonce", nonce);
  get(evil.theirs->send(Value().set("share", share), Limit(10'000, stop)));
  get(share_memory(meeting, 1, Limit(10'000, stop)));
  CHECK(get(evil.theirs->receive(Limit(10'000, stop))).boolean("shared") == seal);
}

// Hands on the connections to an address; from `flip` on it alters one bit in each lot of bytes.
class Proxy {
 public:
  explicit Proxy(const std::string& to) : listener_(get(listen_at({"127.0.0.1", 0}))) {
    thread_ = std::thread([this, to] { run(get(parse_address(to))); });
  }
  ~Proxy() {
    stop_.now(make_error(ErrorKind::cancelled, "enough"));
    thread_.join();
  }
  std::string address() const { return to_string(local_address(listener_.get())); }
  std::atomic<bool> flip{false};

 private:
  void run(const Address& to) {
    std::vector<Fd> ends;  // 2 k and 2 k + 1 belong together
    const Limit limit(60'000, stop_);
    while (!stop_.asked()) {
      std::vector<pollfd> set{{stop_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const auto& e : ends) set.push_back({e.get(), POLLIN, 0});
      ::poll(set.data(), set.size(), 1000);
      for (std::size_t i = 0; i + 2 < set.size(); ++i) {
        if (!set[i + 2].revents) continue;
        auto bytes = bytes_from(ends[i].get());
        if (bytes.empty()) ::shutdown(ends[i ^ 1].get(), SHUT_WR), ends[i] = Fd();
        if (flip && !bytes.empty()) bytes.back() ^= 1;
        pass(ends[i ^ 1].get(), bytes, limit);
      }
      if (Fd fd = set[1].revents ? accept_from(listener_.get()) : Fd(); fd.valid()) {
        ends.push_back(std::move(fd));
        ends.push_back(get(connect_to(to, limit)));
      }
    }
  }
  static void pass(int fd, std::string_view bytes, const Limit& limit) {
    while (!bytes.empty()) {
      const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0) bytes.remove_prefix(std::size_t(n));
      else if (errno != EAGAIN || !limit.wait(fd, POLLOUT)) return;
    }
  }
  Fd listener_;
  Stop stop_;
  std::thread thread_;
};

TEST_CASE("ranks find data that was altered on its way", "[collective]") {
  const auto address = free_address();
  Proxy proxy(address);
  const auto ranks = meet_all({options_of(0, 2, address, false), options_of(1, 2, proxy.address(), false)});
  const std::vector<Ranks> both{get(ranks[0]), get(ranks[1])};
  const auto sum = [](Communicator& c) -> Result<> {
    std::vector<float> v(100'000, 1);
    RILLE_CHECK(all_reduce(c, v));
    if (v[99'999] != 2) return make_error(ErrorKind::internal, "another sum");
    return success();
  };
  all_good(each(both, sum));
  proxy.flip = true;
  for (const auto& failed : each(both, sum)) {
    REQUIRE(!failed);
    INFO(failed.error().summary());
    CHECK(failed.error().kind == ErrorKind::integrity);
    CHECK(failed.error().message.find("altered on the way") != std::string::npos);
  }
}

}  // namespace
}  // namespace rille::collective
