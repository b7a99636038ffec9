#include "tests/fuzz/web_liar.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sessions {

const std::string& WebLiar::content() {
  static const std::string all = [] {
    std::string out;
    while (out.size() < 120'000) out += std::to_string(out.size()) + " of the file\n";
    return out;
  }();
  return all;
}

const std::string& WebLiar::json() {
  static const std::string text = R"({"machines":[{"id":"i-1","state":"running"}]})";
  return text;
}

// What is read and written on one connection, in TLS or plainly.
struct WebLiar::Connection {
  int fd;
  SSL* tls = nullptr;

  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const int n = tls ? SSL_write(tls, bytes.data(), static_cast<int>(bytes.size()))
                        : static_cast<int>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // A request's head, with its body read and dropped; "": the client has gone.
  std::string read_request(std::string& buffer) const {
    char block[16384];
    std::size_t end = 0, body = 0;
    for (bool headed = false;;) {
      if (!headed && (end = buffer.find("\r\n\r\n")) != std::string::npos) {
        headed = true;
        const std::size_t length = buffer.find("Content-Length: ");
        body = length < end ? static_cast<std::size_t>(std::atoll(buffer.c_str() + length + 16)) : 0;
      }
      if (headed && buffer.size() >= end + 4 + body) break;
      const int n = tls ? SSL_read(tls, block, sizeof block) : static_cast<int>(::recv(fd, block, sizeof block, 0));
      if (n <= 0) return "";
      buffer.append(block, static_cast<std::size_t>(n));
    }
    const std::string head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4 + body);
    return head;
  }
};

WebLiar::WebLiar(std::string private_url) : private_url_(std::move(private_url)) {
  for (int i = 0; i < ports; ++i) {
    listeners_[i] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    fuzz_check(::bind(listeners_[i], reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                   ::listen(listeners_[i], 128) == 0 &&
                   ::getsockname(listeners_[i], reinterpret_cast<sockaddr*>(&address), &size) == 0,
               "a port listens");
    ports_[i] = ntohs(address.sin_port);
  }
  for (int i = 0; i < ports; ++i) acceptors_.emplace_back([this, i] { listen(static_cast<Port>(i)); });
}

WebLiar::~WebLiar() {
  for (const int fd : listeners_) ::shutdown(fd, SHUT_RDWR);
  for (std::thread& thread : acceptors_) thread.join();
  while (connections_ > 0) ::usleep(1000);
  for (const int fd : listeners_) ::close(fd);
  SSL_CTX_free(certificate_.context);
  SSL_CTX_free(other_.context);
}

void WebLiar::begin(std::uint64_t seed, double rate) {
  std::lock_guard lock(mutex_);
  seed_ = seed, number_ = 0, rate_ = rate;
}

std::string WebLiar::url(Port port, const std::string& path, const char* host) const {
  return std::string(port == secure || port == stranger ? "https://" : "http://") + host + ":" +
         std::to_string(ports_[port]) + path;
}

void WebLiar::listen(Port which) {
  for (;;) {
    const int fd = ::accept4(listeners_[which], nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ++connections_;
    std::thread([this, fd, which] {
      serve(fd, which);
      ::close(fd);
      --connections_;
    }).detach();
  }
}

void WebLiar::serve(int fd, Port which) {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);  // OpenSSL writes to sockets that are closed
  if (which == forbidden) forbidden_asked_ = true;
  std::uint64_t seed = 0;
  double rate = 0;
  const auto turn = [&] {
    std::lock_guard lock(mutex_);
    rate = rate_;
    seed = seed_ * 1000 + number_++;
  };
  turn();
  Dice dice(seed);
  Connection connection{fd};
  if (which == secure || which == stranger) {
    if (dice.chance(rate / 8)) {
      (void)connection.write(dice.chance(0.5) ? dice.bytes(dice.below(500)) : "HTTP/1.1 200 OK\r\n\r\nplain");
      return;
    }
    connection.tls = SSL_new(which == secure ? certificate_.context : other_.context);
    SSL_set_fd(connection.tls, fd);
    if (SSL_accept(connection.tls) != 1) return SSL_free(connection.tls);
  }
  std::string buffer;
  for (bool open = true; open;) {
    const std::string head = connection.read_request(buffer);
    if (head.empty()) break;
    turn();
    dice = Dice(seed);
    if (which == elsewhere) elsewhere_asked_ = true;
    if (which == elsewhere && head.find(secret) != std::string::npos) secret_leaked_ = true;
    const WebAnswer told = answer(head, which == elsewhere ? 0 : rate, dice);
    const std::size_t piece = told.piece > 0 ? told.piece : std::max<std::size_t>(1, told.bytes.size());
    for (std::size_t at = 0; open && at < told.bytes.size(); at += piece) {
      if (at > 0) ::usleep(1000);
      if (told.silent_ms > 0 && at + piece >= told.bytes.size())
        ::usleep(static_cast<useconds_t>(told.silent_ms) * 1000);
      open = connection.write(std::string_view(told.bytes).substr(at, piece));
    }
    open &= !told.closes;
  }
  SSL_free(connection.tls);
}

namespace {

std::string header_of(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

std::string honest_answer(const std::string& head) {
  const bool file = head.find(" /file") != std::string::npos;
  const std::string& all = file ? WebLiar::content() : WebLiar::json();
  const std::string from = header_of(head, "Range");
  std::string status = "200 OK", more = file ? "ETag: \"v1\"\r\n" : "Content-Type: application/json\r\n";
  std::size_t begin = 0;
  if (file && from.starts_with("bytes=") && header_of(head, "If-Range") == "\"v1\"") {
    begin = std::min<std::size_t>(std::strtoull(from.c_str() + 6, nullptr, 10), all.size());
    status = "206 Partial Content";
    more += "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(all.size() - 1) + "/" +
            std::to_string(all.size()) + "\r\n";
  }
  if (file && header_of(head, "If-None-Match") == "\"v1\"") return "HTTP/1.1 304 Not Modified\r\n" + more + "\r\n";
  const std::string body = all.substr(begin);
  return "HTTP/1.1 " + status + "\r\n" + more + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         (head.starts_with("HEAD ") ? "" : body);
}

}  // namespace

WebAnswer WebLiar::answer(const std::string& head, double rate, Dice& dice) const {
  WebAnswer out;
  out.bytes = honest_answer(head);
  if (!dice.chance(rate)) return out;
  const std::vector<std::string> places = {private_url_,
                                           url(elsewhere, "/file"),
                                           url(elsewhere, "/x"),
                                           url(forbidden, "/"),
                                           url(plain, "/file"),
                                           url(secure, "/file"),
                                           url(stranger, "/file"),
                                           "/file",
                                           "/loop",
                                           "//",
                                           "",
                                           "file:///etc/passwd",
                                           "gopher://127.0.0.1:1/_x",
                                           "ftp://127.0.0.1:1",
                                           "dict://127.0.0.1:1",
                                           "javascript:alert(1)",
                                           "http://[::1",
                                           "http://user:pw@127.0.0.1",
                                           "?",
                                           "http:///etc/passwd",
                                           "HTTP://127.0.0.1:0/x",
                                           "scp://127.0.0.1/x",
                                           url(secure, "/loop")};
  return web_lie(dice, out.bytes, places);
}

}  // namespace sessions
