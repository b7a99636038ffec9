// Sessions of the HTTP client and of staging with servers that lie (web_liar.hpp): web_sessions [--sessions N]
// [--seed FIRST]. After each: no secret reached another origin, nothing was read from or written outside of the target,
// what was refused was not asked, no answer is larger than its limit, and an error has one of the usual kinds. Honest
// servers are obeyed, a stranger's certificate never is.
#include <map>

#include "runtime/core/net/http.hpp"
#include "runtime/workflow/transfer/stage.hpp"
#include "tests/fuzz/web_liar.hpp"

using namespace rille;
using sessions::Dice;
using sessions::WebLiar;
namespace fs = std::filesystem;

namespace {

constexpr const char* private_words = "words of a private file";
constexpr std::int64_t answer_bytes_max = 1 << 20, stage_bytes_max = 2 << 20;

struct World {
  const std::string root = sessions::folder_for("rille-web-sessions");
  const std::string outer = root + "/outer", target = outer + "/target";
  std::unique_ptr<Loop> loop = Loop::create().value();
  std::unique_ptr<WebLiar> liar;
  std::unique_ptr<net::HttpClient> client;
  std::map<std::string, std::string> before;

  World() {
    fs::create_directories(outer + "/elsewhere");
    std::ofstream(outer + "/private") << private_words;
    liar = std::make_unique<WebLiar>("file://" + outer + "/private");
    std::ofstream(outer + "/ca.pem") << liar->certificate_pem();
    before = sessions::listing(outer, target);
  }
  ~World() {
    client.reset();
    liar.reset();
    fs::remove_all(root);
  }
  void renew_client() {
    net::HttpOptions options;
    options.ca_file = outer + "/ca.pem";
    options.proxy_from_environment = false;
    options.jitter_seed = 1;
    client = std::make_unique<net::HttpClient>(*loop, options);
  }
};

struct Session {
  World& world;
  Dice dice;
  const double rate;
  std::map<std::string, std::uint64_t>& ends;

  static double rate_of(Dice& dice) {
    constexpr double rates[] = {0, 0.1, 0.3, 0.6, 1, 1};
    return rates[dice.below(std::size(rates))];
  }
  Session(World& w, std::uint64_t seed, std::map<std::string, std::uint64_t>& e)
      : world(w), dice(seed), rate(rate_of(dice)), ends(e) {}

  // True: it succeeded.
  template <class T>
  bool judge(const char* what, const Result<T>& result, std::initializer_list<ErrorKind> kinds) {
    ++ends[std::string(what) + (result ? " succeeds" : " " + std::string(to_string(result.error().kind)))];
    if (result) return true;
    const std::string said = error_to_value(result.error()).to_json();
    fuzz_check(said.find(WebLiar::secret) == std::string::npos, "an error has no secret");
    fuzz_check(said.find(private_words) == std::string::npos, "an error has nothing of a private file");
    const bool usual = std::find(kinds.begin(), kinds.end(), result.error().kind) != kinds.end();
    if (!usual) std::fprintf(stderr, "%s: %s\n", what, result.error().summary().c_str());
    fuzz_check(usual, "an error is one of the usual kinds");
    return false;
  }

  std::function<Result<>(const std::string&, const std::string&)> grants() const;
  net::HttpRequest request(WebLiar::Port port, const std::string& path);
  void send(const char* what, net::HttpRequest request, bool file);
  void refused(const char* what, const std::string& url);
  void stage(WebLiar::Port port);
  void act();
};

std::function<Result<>(const std::string&, const std::string&)> Session::grants() const {
  return [forbidden = std::to_string(world.liar->port(WebLiar::forbidden))](const std::string&,
                                                                            const std::string& port) -> Result<> {
    if (port == forbidden) return make_error(ErrorKind::denied, "that port is not granted");
    return success();
  };
}

net::HttpRequest Session::request(WebLiar::Port port, const std::string& path) {
  net::HttpRequest out;
  out.url = world.liar->url(port, path);
  out.headers = {{"Authorization", std::string("Bearer ") + WebLiar::secret}, {"X-Api-Key", WebLiar::secret}};
  out.connect_timeout_ms = 500;
  out.stall_timeout_ms = 100;
  out.total_timeout_ms = 3000;
  out.response_bytes_max = answer_bytes_max;
  out.may_connect = grants();
  out.retry = {.attempts = 2, .base_ms = 1, .cap_ms = 2, .retry_after_max_ms = 3};
  return out;
}

void Session::send(const char* what, net::HttpRequest asked, bool file) {
  const bool secure = asked.url.starts_with("https://"), heads = asked.method == "HEAD";
  std::string piped;
  if (file && dice.chance(0.5)) {
    asked.sink = [&piped](std::string_view piece) {
      piped += piece;
      return success();
    };
  }
  const bool sinks = static_cast<bool>(asked.sink);
  const Result<net::HttpResponse> got = run_blocking(*world.loop, world.client->send(std::move(asked)));
  if (!judge(what, got, {ErrorKind::network, ErrorKind::timeout, ErrorKind::denied}))
    return fuzz_check(rate > 0, "honest servers are obeyed");
  const std::string& body = sinks && got->ok() ? piped : got->body;
  fuzz_check(static_cast<std::int64_t>(body.size()) <= answer_bytes_max, "an answer has a limit");
  fuzz_check(got->url.starts_with("https://") || (!secure && got->url.starts_with("http://")), "https stays https");
  fuzz_check(body.find(private_words) == std::string::npos, "no answer is a file of this machine");
  if (rate > 0) return;
  fuzz_check(got->status == 200 && body == (heads  ? ""
                                            : file ? WebLiar::content()
                                                   : WebLiar::json()),
             "an answer is whole");
}

void Session::refused(const char* what, const std::string& url) {
  net::HttpRequest asked = request(WebLiar::stranger, "/file");
  asked.url = url;
  const Result<net::HttpResponse> got = run_blocking(*world.loop, world.client->send(std::move(asked)));
  fuzz_check(!judge(what, got, {ErrorKind::network, ErrorKind::timeout}), "a certificate is verified");
}

void Session::stage(WebLiar::Port port) {
  transfer::StageOptions options;
  options.headers = {{"Authorization", std::string("Bearer ") + WebLiar::secret}};
  options.size_bytes_max = stage_bytes_max;
  options.stall_timeout_ms = 100;
  options.resumes_max = 2;
  options.retry = {.attempts = 2, .base_ms = 1, .cap_ms = 2, .retry_after_max_ms = 3};
  if (dice.chance(0.3)) options.cache_directory = world.target + "/cache";
  const std::string right = store::fingerprint(WebLiar::content(), true).sha256;
  if (dice.chance(0.5)) options.sha256 = right;
  options.may_connect = grants();
  const std::string expected = options.sha256, to = world.target + "/staged";
  const Result<transfer::Staged> got =
      run_blocking(*world.loop, transfer::stage(*world.client, world.liar->url(port, "/file"), to, std::move(options)));
  if (!judge("stage", got,
             {ErrorKind::network, ErrorKind::timeout, ErrorKind::integrity, ErrorKind::invalid, ErrorKind::auth,
              ErrorKind::quota, ErrorKind::state, ErrorKind::denied}))
    return fuzz_check(rate > 0, "honest servers are obeyed");
  const auto print = store::fingerprint_file(to, true);
  fuzz_check(print.ok() && print->sha256 == got->sha256 && print->size_bytes <= stage_bytes_max,
             "a file is what is told");
  fuzz_check(expected.empty() || got->sha256 == expected, "a digest that is expected is kept");
  fuzz_check(rate > 0 || got->sha256 == right, "an honest file arrives whole");
}

void Session::act() {
  const WebLiar::Port port = dice.chance(0.5) ? WebLiar::secure : WebLiar::plain;
  switch (dice.below(9)) {
    case 0: return send("get", request(port, "/json"), false);
    case 1: return send("file", request(port, "/file"), true);
    case 2: {
      net::HttpRequest head = request(port, "/file");
      head.method = "HEAD";
      return send("head", std::move(head), false);
    }
    case 3: {
      net::HttpRequest post = request(port, "/json");
      post.method = "POST";
      post.body = "{\"a\":1}";
      return send("post", std::move(post), false);
    }
    case 4: {
      net::HttpRequest upload = request(port, "/json");
      upload.method = "PUT";
      upload.body_bytes = 100'000;
      upload.body_read = [](std::uint64_t, char* out, std::size_t size) {
        std::fill(out, out + size, 'u');
        return success();
      };
      return send("put", std::move(upload), false);
    }
    case 5: return refused("stranger", world.liar->url(WebLiar::stranger, "/file"));
    case 6: return refused("wrong name", world.liar->url(WebLiar::secure, "/file", "localhost"));
    default: return stage(port);
  }
}

}  // namespace

int main(int argc, char** argv) {
  World world;
  const auto one = [&](std::uint64_t seed, std::map<std::string, std::uint64_t>& ends) {
    Session session(world, seed, ends);
    world.liar->begin(seed, session.rate);
    // A kept connection may hold what an earlier lie has left.
    if (seed % 16 == 0 || !world.client || session.rate == 0) world.renew_client();
    fs::remove_all(world.target);
    fs::create_directories(world.target);
    for (std::size_t n = 1 + session.dice.below(3); n > 0; --n) session.act();
    fuzz_check(!world.liar->secret_leaked(), "no secret reaches another origin");
    fuzz_check(!world.liar->forbidden_asked(), "what is not granted is not asked");
    fuzz_check(sessions::listing(world.outer, world.target) == world.before, "nothing else is written");
  };
  const sessions::Range range = sessions::range_of(argc, argv);
  sessions::run_all("web_sessions", range, one);
  fuzz_check(range.count < 300 || world.liar->elsewhere_asked(), "redirects led to another origin");
  return 0;
}
