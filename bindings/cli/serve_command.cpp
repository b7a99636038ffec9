// `rille serve`: the pages of `rille report` live, a list of runs and of what is rented, and metrics for a monitor.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "bindings/cli/command.hpp"
#include "bindings/cli/interrupt.hpp"
#include "bindings/cli/serve/site.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t token_bytes = 24;

// "127.0.0.1:7455", "[::1]:7455", "localhost:7455"
Result<> read_listen(const std::string& text, net::HttpServerOptions& options) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  else if (host.find(':') != host.npos) host.clear();
  const char* const end = text.data() + text.size();
  const char* const from = colon == text.npos ? end : text.data() + colon + 1;
  const auto [at, failed] = std::from_chars(from, end, options.port);
  if (host == "localhost") host = "127.0.0.1";
  char binary[sizeof(in6_addr)];
  const bool numeric = inet_pton(AF_INET, host.c_str(), binary) == 1 || inet_pton(AF_INET6, host.c_str(), binary) == 1;
  if (!numeric || from == end || failed != std::errc() || at != end)
    return make_error(ErrorKind::invalid, fmt::format("--listen {}: not an address with a port", text),
                      "a numeric address: 127.0.0.1:7455 or [::1]:7455; port 0 takes a free one");
  options.host = host;
  return {};
}

// The token of this home: an address stays the same when `rille serve` is started again. Who can read the file can
// read the journal beside it.
Result<std::string> token_of(const std::string& home) {
  const std::string path = home + "/serve.token";
  if (access(path.c_str(), F_OK) == 0) {
    RILLE_TRY(std::string token, store::read_file(path, 1024));
    while (token.ends_with('\n')) token.pop_back();
    if (token.size() == 2 * token_bytes && token.find_first_not_of("0123456789abcdef") == token.npos) return token;
    return make_error(ErrorKind::integrity, fmt::format("'{}' has no token of `rille serve`", path),
                      "remove the file: a new token is made");
  }
  std::string token = random_hex(token_bytes);
  RILLE_CHECK(store::write_file_atomic(path, token + "\n", 0600));
  return token;
}

struct ServeCommand final : Command {
  std::string listen = "127.0.0.1:7455", certificate, key;
  void declare(Options& o) override {
    o.option("--listen", listen, "address and port; port 0: a free one").shows_default();
    Option cert = o.option("--certificate", certificate, "PEM file for TLS, needed off 127.0.0.1 and [::1]");
    Option private_key = o.option("--key", key, "PEM file of the certificate's key").needs(cert);
    cert.needs(private_key);
  }
  Exit run(App& app) override;
};

Exit ServeCommand::run(App& app) {
  net::HttpServerOptions options;
  options.certificate = certificate, options.key = key;
  if (Result<> read = read_listen(listen, options); !read) return fail_usage(app, read.error());
  const Result<std::string> token = token_of(app.engine->home());
  if (!token) return fail(app, token.error());
  Site site(app, *token);
  auto server =
      net::HttpServer::start(*app.loop, options, [&](const net::RequestHead& head) { return site.answer(head); });
  if (!server) return fail(app, server.error());
  bool ends = false;
  Interrupts interrupts(
      *app.loop, nullptr, nullptr, [&](int) { ends = true; }, [&](int) { ends = true; });
  const std::string address = (*server)->origin() + "/" + *token + "/";
  if (app.json) app.terminal.out(Value().set("address", address).to_json() + "\n");
  else {
    app.terminal.out(address + "\n");
    app.terminal.note("open this address; it is also the key to it. Ctrl-C ends the server, and no run with it");
  }
  app.loop->run_until([&] { return ends; });
  return Exit::ok;
}

const Registered<ServeCommand> serve_row({Group::look, "serve",
                                          "the reports as live pages, and metrics for a monitor"});

}  // namespace

}  // namespace rille::cli
