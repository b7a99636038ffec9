// Sessions of the runner's AgentClient with an agent that lies (liar.hpp): agent_sessions [--sessions N] [--seed
// FIRST]. After each: nothing was written outside of the target, accepted data has the announced content, an error has
// the kind integrity, network or io (or a kind that the liar sent), integrity if the liar broke the protocol, and the
// session has ended. An honest agent is obeyed.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/workflow/agent/client.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/agent/metric.hpp"
#include "tests/fuzz/liar.hpp"

using namespace rille;
using namespace rille::agent;
using sessions::Dice;
namespace fs = std::filesystem;

namespace {

const std::string root = sessions::folder_for("rille-agent-sessions");
const std::string outer = root + "/outer", target = outer + "/target", source = outer + "/source";

void make_world() {
  fs::create_directories(outer + "/elsewhere");
  fs::create_directories(source + "/d");
  std::ofstream(outer + "/kept") << "kept";
  std::ofstream(source + "/x") << "ten bytes\n";
  std::ofstream(source + "/d/big") << sessions::Liar::files().at("big");
  std::ofstream(source + "/d/empty");
}

void make_target() {
  for (const auto& entry : fs::directory_iterator(outer))
    if (entry.path().string().starts_with(target)) fs::remove_all(entry.path());
  fs::create_directories(target);
  fs::create_directory_symlink(outer + "/elsewhere", target + "/link");
}

// Where the command of a channel (hand_over.cpp) passes its standard input and output.
class Door {
 public:
  Door() {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    fuzz_check(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(fd_, 8) == 0,
               "a socket listens");
  }
  // Blocks: the command sends them at once.
  std::pair<int, int> take() {
    const int guest = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    char byte = 0;
    iovec one{&byte, 1};
    msghdr message{};
    message.msg_iov = &one;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    fuzz_check(::recvmsg(guest, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message), "files are passed");
    int fds[2];
    std::memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fds);
    ::close(guest);
    return {fds[0], fds[1]};
  }
  const std::string path = root + "/door";

 private:
  int fd_;
};

struct Session {
  Loop& loop;
  Dice dice;
  const double rate;
  std::optional<CancelSource> enough;
  std::optional<Timer> soon;
  sessions::Liar liar;
  std::map<std::string, std::uint64_t>& ends;
  std::unique_ptr<AgentClient> client;
  bool liar_ended = false, silent = false;

  static double rate_of(Dice& dice) {
    constexpr double rates[] = {0, 0.02, 0.1, 0.3, 0.3, 0.7, 1};
    return rates[dice.below(std::size(rates))];
  }

  Session(Loop& l, std::uint64_t seed, std::map<std::string, std::uint64_t>& e)
      : loop(l), dice(seed), rate(rate_of(dice)), liar(loop, dice, rate, outer + "/escaped", [this] { hush(); }),
        ends(e) {}

  // The liar may have left a request without an answer: a user would cancel it.
  void hush() {
    silent = true;
    soon.emplace(loop, 30, [this] { enough->cancel(make_error(ErrorKind::cancelled, "an answer that never comes")); });
  }

  template <class T>
  bool judge(const char* what, const Result<T>& result) {
    if (result) {
      ++ends[std::string(what) + " succeeds"];
      return true;
    }
    const ErrorKind kind = result.error().kind;
    (void)result.error().summary();
    (void)error_to_value(result.error()).to_json();
    const bool usual = kind == ErrorKind::integrity || kind == ErrorKind::network || kind == ErrorKind::io;
    if (!(usual || liar.told_error() || (kind == ErrorKind::cancelled && silent)))
      std::fprintf(stderr, "%s: %s\n", what, result.error().summary().c_str());
    fuzz_check(usual || liar.told_error() || (kind == ErrorKind::cancelled && silent), "an error is one of these");
    fuzz_check(rate > 0, "an honest agent is obeyed");
    fuzz_check(client || !liar.broke_protocol() || kind == ErrorKind::integrity || kind == ErrorKind::cancelled,
               "what breaks the protocol instead of a greeting is an integrity error");
    ++ends[std::string(what) + " " + std::string(to_string(kind))];
    return false;
  }

  template <class T>
  Result<T> wait(Task<Result<T>> task) {
    return run_blocking(loop, std::move(task));
  }

  void connect(const std::string& door, const std::function<std::pair<int, int>()>& take);
  void act();
  void get(const std::string& remote, const std::string& local);
  void check_target();
  void check_end();
  void end();
};

void Session::connect(const std::string& door, const std::function<std::pair<int, int>()>& take) {
  ChannelSpec channel{{HAND_OVER, door}, "/instance"};
  ClientOptions options;
  options.agent_argv = {"agent"};
  options.build = "test";
  options.token = std::string(64, 'a');
  enough.emplace();
  std::optional<Result<std::unique_ptr<AgentClient>>> made;
  auto begin = [](Session& s, ChannelSpec c, ClientOptions o, auto& out) -> Task<void> {
    out.emplace(co_await AgentClient::connect(s.loop, std::move(c), std::move(o), s.enough->token()));
  };
  auto lie = [](Session& s, std::pair<int, int> ends_of_it) -> Task<void> {
    co_await s.liar.serve(ends_of_it.first, ends_of_it.second);
    s.liar_ended = true;
  };
  loop.spawn(begin(*this, std::move(channel), std::move(options), made));
  bool turned = false;
  loop.post([&turned] { turned = true; });
  loop.run_until([&turned] { return turned; });  // the command has started
  loop.spawn(lie(*this, take()));
  loop.run_until([&] { return made.has_value(); });
  if (judge("connect", *made)) client = std::move(**made);
}

void Session::check_target() {
  for (auto it = fs::recursive_directory_iterator(target); it != decltype(it)(); ++it) {
    if (!it->is_regular_file() || it->is_symlink()) continue;
    if (it->path().filename().string().find(".part-") != std::string::npos) continue;
    const auto print = store::fingerprint_file(it->path(), true);
    fuzz_check(print.ok() && liar.digests().count(print->sha256), "what was accepted is what was told");
    fuzz_check((static_cast<unsigned>(it->status().permissions()) & 07000) == 0, "a machine chooses no such bit");
  }
}

void Session::get(const std::string& remote, const std::string& local) {
  const bool good = judge("get", wait(client->get(
                                     remote, local, [](std::int64_t, std::int64_t) {}, enough->token())));
  check_target();
  if (!good || rate > 0) return;
  for (const auto& [path, content] : sessions::Liar::files()) {
    std::ifstream in(remote == "loot" ? local + "/" + path : local, std::ios::binary);
    if (remote == "loot" || remote == "loot/" + path)
      fuzz_check(std::string(std::istreambuf_iterator<char>(in), {}) == content, "an honest file arrives whole");
  }
}

// One operation, as the engine or a script asks for it.
void Session::act() {
  enough.emplace();
  soon.reset();
  const CancelToken token = enough->token();
  std::size_t heard = 0;
  AttachHandlers handlers;
  handlers.log = [&](std::string_view bytes, std::int64_t) { heard += bytes.size(); };
  handlers.progress = handlers.checkpoint = [&](const Value& v) { heard += v.to_json().size(); };
  handlers.notice = [&](std::int64_t) { ++heard; };
  handlers.metrics = [&](std::string_view lines, std::int64_t) {
    fuzz_check(check_metric_lines(lines).ok(), "metrics that are passed on are metrics");
    heard += lines.size();
  };
  StartRequest start{"main/x#1", 1, 1, Value().set("kind", "exec")};
  switch (dice.below(17)) {
    case 0: return get("loot", target);
    case 1: return get("loot", target + "/new/folder");
    case 2: return get("loot/big", target + "/file");
    case 3: (void)judge("put", wait(client->put(source, "work", {}, token))); break;
    case 4: (void)judge("put", wait(client->put(source + "/d/big", "big", {}, token))); break;
    case 5: (void)judge("list", wait(client->list("loot", token))); break;
    case 6: (void)judge("stat", wait(client->stat("loot/a", true, token))); break;
    case 7: (void)judge("describe", wait(client->describe(token))); break;
    case 8: (void)judge("status", wait(client->status("main/x#1", token))); break;
    case 9: (void)judge("start", wait(client->start(std::move(start), token))); break;
    case 10: (void)judge("attach", wait(client->attach("main/x#1", 0, handlers, token))); break;
    case 11: (void)judge("forget", wait(client->forget({"main/x#1", "y"}, "tests", token))); break;
    case 12: (void)judge("cancel", wait(client->cancel("main/x#1", "tests", 10, token))); break;
    default: return get("loot", target);
  }
}

// Why the channel broke, if it did. A cut connection is no lie.
void Session::check_end() {
  if (!client || !client->broken()) return;
  const Result<> why = wait(client->wait_broken());
  fuzz_check(!why.ok(), "a broken channel has a reason");
  if (!liar.broke_protocol()) return;
  fuzz_check(why.error().kind == ErrorKind::integrity && why.error().code == broken_protocol && !why.error().retryable,
             "what breaks the protocol is an integrity error");
}

// The client goes; its channel's command and the liar's ends of the channel go with it.
void Session::end() {
  soon.reset();
  client.reset();
  loop.run_until([this] { return liar_ended; });
}

}  // namespace

int main(int argc, char** argv) {
  make_world();
  Door door;
  const std::unique_ptr<Loop> loop = Loop::create().value();
  const auto before = sessions::listing(outer, target);
  const auto one = [&](std::uint64_t seed, std::map<std::string, std::uint64_t>& ends) {
    make_target();
    Session session(*loop, seed, ends);
    session.connect(door.path, [&] { return door.take(); });
    for (std::size_t n = 2 + session.dice.below(5); n > 0 && session.client && !session.client->broken(); --n)
      session.act(), session.check_end();
    session.end();
    fuzz_check(sessions::listing(outer, target) == before, "nothing is written outside of the target");
  };
  sessions::run_all("agent_sessions", sessions::range_of(argc, argv), one);
  fs::remove_all(root);
  return 0;
}
