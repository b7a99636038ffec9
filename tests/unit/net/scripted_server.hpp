// A small HTTP/1.1 server on loopback for tests, with realistic faults: it passes every request to a handler, which may
// write any bytes, cut the connection, or hold it silently. With a certificate it speaks TLS. Runs on its own threads;
// they call the handler for one request at a time.
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/net/server_certificate.hpp"

class ScriptedServer {
 public:
  struct Request {
    std::string method, target, body;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string header(const std::string& name) const {
      auto it = headers.find(name);
      return it == headers.end() ? "" : it->second;
    }
  };

  class Wire {
   public:
    void send(const std::string& bytes) {
      if (ssl_) {
        SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
        return;
      }
      for (std::size_t at = 0; at < bytes.size();) {
        ssize_t n = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (n <= 0) {
          open = false;
          return;
        }
        at += static_cast<std::size_t>(n);
      }
    }
    void answer(int status, const std::string& body, const std::string& more_headers = "") {
      send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
           more_headers + "\r\n" + body);
    }
    void cut() { open = false; }
    void hold() {  // until the client hangs up or the server stops
      char c;
      while (::recv(fd_, &c, 1, 0) > 0) {}
      open = false;
    }
    bool open = true;

   private:
    friend class ScriptedServer;
    Wire(int fd, SSL* ssl) : fd_(fd), ssl_(ssl) {}
    int fd_;
    SSL* ssl_;
  };

  using Handler = std::function<void(const Request&, Wire&)>;

  explicit ScriptedServer(Handler handler, bool tls = false) : handler_(std::move(handler)), tls_(tls) {
    if (tls_) {
      ServerCertificate made = ServerCertificate::make();
      context_ = made.context, pem_ = std::move(made.pem);
    }
    listen_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listen_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listen_, 64);
    socklen_t size = sizeof address;
    ::getsockname(listen_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    ::shutdown(listen_, SHUT_RDWR);
    acceptor_.join();
    {
      std::lock_guard lock(mutex_);
      for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (auto& thread : threads_) thread.join();
    ::close(listen_);
    SSL_CTX_free(context_);
  }

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& path = "/") const { return (tls_ ? "https://" : "http://") + host() + path; }
  int port() const { return port_; }
  std::vector<Request> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t count() { return requests().size(); }
  // Changes or reads what the handler uses, while it does not run.
  template <class F>
  auto quietly(F&& use) {
    std::lock_guard one(handling_);
    return use();
  }
  const std::string& certificate_pem() const { return pem_; }

 private:
  void accept_all() {
    while (true) {
      int fd = ::accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      std::lock_guard lock(mutex_);
      open_.push_back(fd);
      threads_.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe,
                    nullptr);  // OpenSSL writes to closed sockets; only this thread is to bear it
    SSL* ssl = nullptr;
    bool ready = true;
    if (tls_) {
      ssl = SSL_new(context_);
      SSL_set_fd(ssl, fd);
      ready = SSL_accept(ssl) == 1;
    }
    std::string buffer;
    Request request;
    Wire wire(fd, ssl);
    while (ready && wire.open && read_request(fd, ssl, buffer, request)) {
      std::lock_guard one(handling_);
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      handler_(request, wire);
    }
    SSL_free(ssl);
    std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    ::close(fd);
  }

  static bool more(int fd, SSL* ssl, std::string& buffer) {
    char piece[16384];
    ssize_t n = ssl ? SSL_read(ssl, piece, sizeof piece) : ::recv(fd, piece, sizeof piece, 0);
    if (n > 0) buffer.append(piece, static_cast<std::size_t>(n));
    return n > 0;
  }

  static bool read_request(int fd, SSL* ssl, std::string& buffer, Request& out) {
    std::size_t end;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos)
      if (!more(fd, ssl, buffer)) return false;
    std::string head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4);
    out = {};
    std::size_t line_end = head.find("\r\n"), a = head.find(' '), b = head.find(' ', a + 1);
    out.method = head.substr(0, a);
    out.target = head.substr(a + 1, b - a - 1);
    for (std::size_t at = line_end + 2; at < head.size(); at = line_end + 2) {
      line_end = head.find("\r\n", at);
      std::size_t colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), ::tolower);
      std::size_t value = head.find_first_not_of(' ', colon + 1);
      out.headers[name] = head.substr(value, line_end - value);
    }
    std::string length = out.header("content-length");
    std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (buffer.size() < size)
      if (!more(fd, ssl, buffer)) return false;
    out.body = buffer.substr(0, size);
    buffer.erase(0, size);
    return true;
  }

  Handler handler_;
  bool tls_;
  SSL_CTX* context_ = nullptr;
  std::string pem_;
  int listen_ = -1, port_ = 0;
  std::mutex mutex_, handling_;
  std::vector<Request> requests_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};
