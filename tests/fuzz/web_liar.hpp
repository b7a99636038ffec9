// WebLiar: web servers on loopback that lie by the seed of the session: lengths, ranges, headers, statuses, redirects,
// compression, TLS. Four of them: plain, over TLS, over TLS with a certificate of a stranger, and another origin, which
// must see no secret. A fifth port must never be asked at all. Each connection has a thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/fuzz/sessions.hpp"
#include "tests/unit/net/server_certificate.hpp"

namespace sessions {

struct WebAnswer {
  std::string bytes;
  bool closes = false;         // hang up after it
  std::size_t piece = 0;       // bytes sent at a time, a millisecond apart; 0: all at once
  std::int64_t silent_ms = 0;  // before the last byte
};

class WebLiar {
 public:
  enum Port { plain, secure, stranger, elsewhere, forbidden, ports };
  static constexpr const char* secret = "sesame-0123456789";
  static const std::string& content();  // of /file
  static const std::string& json();     // of every other path

  // `private_url`: of a file on this machine, which no answer may lead the client to.
  explicit WebLiar(std::string private_url);
  ~WebLiar();
  WebLiar(const WebLiar&) = delete;

  void begin(std::uint64_t seed, double rate);
  std::string url(Port port, const std::string& path, const char* host = "127.0.0.1") const;
  int port(Port which) const { return ports_[which]; }
  const std::string& certificate_pem() const { return certificate_.pem; }
  bool secret_leaked() const { return secret_leaked_; }
  bool forbidden_asked() const { return forbidden_asked_; }
  bool elsewhere_asked() const { return elsewhere_asked_; }  // else it proves nothing that no secret reached it

 private:
  struct Connection;
  void listen(Port which);
  void serve(int fd, Port which);
  WebAnswer answer(const std::string& head, double rate, Dice& dice) const;

  const std::string private_url_;
  ServerCertificate certificate_ = ServerCertificate::make(), other_ = ServerCertificate::make();
  int listeners_[ports] = {}, ports_[ports] = {};
  std::vector<std::thread> acceptors_;
  std::atomic<int> connections_{0};
  std::atomic<bool> secret_leaked_{false}, forbidden_asked_{false}, elsewhere_asked_{false};
  std::mutex mutex_;  // guards what follows
  std::uint64_t seed_ = 0, number_ = 0;
  double rate_ = 0;
};

// One lie, in the place of the honest answer `honest` (its head, empty line and body).
WebAnswer web_lie(Dice& dice, const std::string& honest, const std::vector<std::string>& places);

}  // namespace sessions
