#include "runtime/core/net/http_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/net/loopback.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

namespace {

constexpr std::int64_t accept_again_ms = 100;
constexpr std::int64_t refusal_timeout_ms = 1000;

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
  }
}

HttpAnswer told(int status, const std::string& text) {
  HttpAnswer out;
  out.status = status;
  out.body = text + "\n";
  if (status == 405) out.headers.emplace_back("Allow", "GET, HEAD");
  return out;
}

// No answer may be kept in a cache, be read by a page of another server, or be shown inside one.
std::string text_of(const HttpAnswer& answer, bool head_only, std::int64_t now_us) {
  std::string out = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: "
      "nosniff\r\n"
      "Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: frame-ancestors 'none'\r\n",
      answer.status, reason_of(answer.status), http_date(now_us));
  for (const auto& [name, value] : answer.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (answer.status == 304) return out + "\r\n";
  out += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n\r\n", answer.type, answer.body.size());
  return head_only ? out : out + answer.body;
}

// All bytes up to the empty line. Error with a status: the client is told it.
Async<std::string> receive_head(ServerConnection& connection, CancelToken token) {
  std::string text;
  char piece[4096];
  for (;;) {
    RILLE_CO_TRY(const std::size_t n, co_await connection.read(piece, sizeof piece, token));
    if (n == 0) co_return make_error(ErrorKind::network, "the connection ended before its request");
    const std::size_t from = text.size() < 3 ? 0 : text.size() - 3;
    text.append(piece, n);
    const std::size_t end = text.find("\r\n\r\n", from);
    if (end != text.npos) co_return text.substr(0, end + 4);
    if (text.size() <= request_head_bytes_max) continue;
    Error e = make_error(ErrorKind::invalid, "the head of the request is too large");
    e.http_status = 431;
    co_return e;
  }
}

Async<> send_answer(ServerConnection& connection, const std::string& bytes, CancelToken token) {
  RILLE_CO_CHECK(co_await connection.write(bytes, token));
  co_return co_await connection.finish(token);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(Loop& loop, HttpServerOptions options, Handler handler) {
  const bool secure = !options.certificate.empty();
  if (!secure && !is_loopback_host(options.host))
    return make_error(ErrorKind::config, options.host + " can be reached from other machines, so it needs TLS",
                      "give --certificate and --key, or listen at 127.0.0.1 and reach it by `ssh -L`");
  std::unique_ptr<HttpServer> out(new HttpServer(loop, std::move(options), std::move(handler)));
  if (secure) { RILLE_TRY(out->tls_, ServerTls::open(out->options_.certificate, out->options_.key)); }
  const std::string& host = out->options_.host;
  const bool v6 = host.find(':') != host.npos;
  const std::string address = fmt::format("{}:{}", v6 ? "[" + host + "]" : host, out->options_.port);
  RILLE_TRY(std::unique_ptr<Listener> listener, Listener::listen_tcp(loop, address));
  out->listener_ = std::move(listener);
  loop.spawn(accept_all(out.get(), out->listener_));
  return out;
}

HttpServer::~HttpServer() {
  const Error why = make_error(ErrorKind::cancelled, "the server ends");
  stop_.cancel(why);
  for (const std::shared_ptr<Client>& client : std::exchange(clients_, {})) client->end.cancel(why);
}

std::string HttpServer::origin() const { return (tls_ ? "https://" : "http://") + listener_->address(); }

Task<void> HttpServer::accept_all(HttpServer* self, std::shared_ptr<Listener> listener) {
  const Lifetime::Watch life = self->life_.watch();
  const CancelToken stop = self->stop_.token();
  Loop& loop = self->loop_;
  while (!stop.cancelled()) {
    Result<std::unique_ptr<Stream>> stream = co_await listener->accept(stop);
    if (life.ended()) co_return;
    if (!stream) (void)co_await sleep_for(loop, accept_again_ms, stop);  // no descriptor is free, for example
    else if (self->make_room()) loop.spawn(serve(self, std::move(*stream)));
    if (life.ended()) co_return;
  }
}

// Whether one more connection may be open; the oldest one that was not welcome is closed for it.
bool HttpServer::make_room() {
  if (std::ssize(clients_) < options_.connections_max) return true;
  const auto oldest = std::find_if(clients_.begin(), clients_.end(), [](const auto& one) { return !one->welcome; });
  if (oldest == clients_.end()) return false;
  const std::shared_ptr<Client> client = *oldest;
  clients_.erase(oldest);
  client->end.cancel(make_error(ErrorKind::cancelled, "it gives way to a newer connection"));
  return true;
}

Task<void> HttpServer::serve(HttpServer* self, std::unique_ptr<Stream> stream) {
  const Lifetime::Watch life = self->life_.watch();
  const auto client = std::make_shared<Client>();
  self->clients_.push_back(client);
  {
    ServerConnection connection(std::move(stream), self->tls_.get());
    const Result<> ignored = co_await talk(self, connection, client, life);  // a client that is gone needs no answer
  }
  if (life.alive()) self->clients_.remove(client);
}

Async<> HttpServer::talk(HttpServer* self, ServerConnection& connection, std::shared_ptr<Client> client,
                         Lifetime::Watch life) {
  Loop& loop = self->loop_;
  const CancelToken stop = client->end.token();
  std::function<Async<std::string>(CancelToken)> receive = [&](CancelToken t) { return receive_head(connection, t); };
  const Result<std::string> text =
      co_await with_deadline(loop, self->options_.head_timeout_ms, stop, "receiving a request", receive);
  if (life.ended() || (!text && text.error().http_status == 0)) co_return success();
  const Result<RequestHead> head = text ? read_request_head(*text) : Result<RequestHead>(text.error());
  const HttpAnswer answer = self->answer(head);
  client->welcome = answer.status < 400;
  const std::int64_t most_ms = self->options_.answer_timeout_ms;
  const std::int64_t answer_timeout_ms = client->welcome ? most_ms : std::min(most_ms, refusal_timeout_ms);
  const std::string bytes = text_of(answer, head && head->head, loop.clock().wall_us());
  std::function<Async<>(CancelToken)> send = [&](CancelToken t) { return send_answer(connection, bytes, t); };
  co_return co_await with_deadline(loop, answer_timeout_ms, stop, "sending an answer", send);
}

HttpAnswer HttpServer::answer(const Result<RequestHead>& head) const {
  if (!head) return told(head.error().http_status, head.error().message);
  if (!is_own_name(head->host)) return told(403, "'" + head->host + "' is not a name of this server");
  return handler_(*head);
}

bool HttpServer::is_own_name(const std::string& host) const {
  if (is_loopback_host(options_.host) && is_loopback_host(host)) return true;
  return tls_ && tls_->names(host);
}

}  // namespace rille::net
