// HttpServer: answers GET and HEAD over HTTP/1.1 at one address, for pages that a person or a monitor of this machine
// reads. One request per connection. What each client may take is limited: connections at a time, the size and the time
// of a head, the time of an answer, which is short for a refusal (status 400 and above). When all places are
// taken, the oldest connection without an answer, or with a refusal, is closed for a new one: clients without a token
// cannot lock the others out. The handler runs on the loop thread and may not block for long.
//
// A name in the Host header that is not this server's is refused (403) before the handler is asked: a web page that
// rebinds its own name to this address could otherwise read the answers (DNS rebinding). This server's names are those
// of the loopback for a loopback address, else those in the certificate. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "runtime/core/loop/lifetime.hpp"
#include "runtime/core/net/request_head.hpp"
#include "runtime/core/net/server_tls.hpp"

namespace rille::net {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // of the answer alone
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // a numeric address of this machine
  std::uint16_t port = 0;          // 0: a free one
  std::string certificate, key;    // PEM files; "": no TLS, allowed for a loopback address alone
  int connections_max = 64;
  std::int64_t head_timeout_ms = 10'000, answer_timeout_ms = 60'000;
};

class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const RequestHead&)>;
  // Error config: no TLS off the loopback, or files that ServerTls refuses; invalid: not a numeric address; io: the
  // address cannot be listened at.
  static Result<std::unique_ptr<HttpServer>> start(Loop& loop, HttpServerOptions options, Handler handler);
  ~HttpServer();  // ends all connections
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string origin() const;  // "http://127.0.0.1:8080"

 private:
  HttpServer(Loop& loop, HttpServerOptions options, Handler handler)
      : loop_(loop), options_(std::move(options)), handler_(std::move(handler)) {}
  static Task<void> accept_all(HttpServer* self, std::shared_ptr<Listener> listener);
  struct Client {
    CancelSource end;
    bool welcome = false;  // its request is answered, and not by a refusal
  };
  bool make_room();
  static Task<void> serve(HttpServer* self, std::unique_ptr<Stream> stream);
  static Async<> talk(HttpServer* self, ServerConnection& connection, std::shared_ptr<Client> client,
                      Lifetime::Watch life);
  HttpAnswer answer(const Result<RequestHead>& head) const;
  bool is_own_name(const std::string& host) const;

  Loop& loop_;
  HttpServerOptions options_;
  Handler handler_;
  std::unique_ptr<ServerTls> tls_;
  std::shared_ptr<Listener> listener_;
  CancelSource stop_;
  std::list<std::shared_ptr<Client>> clients_;  // the oldest first
  Lifetime life_;
};

}  // namespace rille::net
