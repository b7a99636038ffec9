#include <memory>

#include "runtime/core/base/time.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/workflow/agent/notice.hpp"

namespace rille::agent {

namespace {

constexpr std::int64_t timeout_ms = 1'000, every_ns = 5'000'000'000;  // as Amazon advises
constexpr const char* token_lasts_s = "21600";
constexpr std::int64_t second_us = 1'000'000;

using Maybe = std::optional<std::int64_t>;

// Parses a time such as "2017-09-18T08:22:00Z" or "2018-08-18 12:05:33", by the service's clock. An HTTP date is
// accepted only in a list, because they are parsed so leniently that another service's page may look like one.
Maybe instant_of(const NoticeSpec& spec, std::string text, std::int64_t now_us) {
  constexpr std::size_t date = 10, whole = 19;
  if (text.size() >= whole && text[date] == ' ') text = text.substr(0, date) + "T" + text.substr(date + 1, 8) + "Z";
  if (const Result<std::int64_t> us = parse_utc(text)) return *us - spec.ahead_s * second_us;
  if (spec.list.empty()) return {};
  const std::int64_t ms = net::parse_retry_after_ms(text, now_us);
  return ms < 0 ? Maybe() : Maybe(now_us + ms * 1'000);
}

Maybe told_by(const NoticeSpec& spec, const std::string& body, std::int64_t now_us) {
  if (spec.field.empty()) {
    if (!body.starts_with(spec.begins)) return {};
    return spec.in_s >= 0 ? Maybe(now_us + spec.in_s * second_us) : instant_of(spec, body, now_us);
  }
  const Result<Value> told = Value::from_json(body);
  if (!told) return {};
  if (spec.list.empty()) return instant_of(spec, told->text(spec.field), now_us);
  const Value::Array* events = (*told)[spec.list].as_array();
  for (std::size_t i = 0; events && i < events->size(); ++i) {
    const Value& event = (*events)[i];
    if (event.text(spec.kind_field) != spec.kind) continue;
    return instant_of(spec, event.text(spec.field), now_us).value_or(now_us);
  }
  return {};
}

net::HttpOptions without_proxy() {
  net::HttpOptions out;
  out.proxy_from_environment = false;
  return out;
}

struct Asking {
  Asking(Loop& l, NoticeSpec s) : loop(l), spec(std::move(s)), http(l, without_proxy()) {}
  Loop& loop;
  const NoticeSpec spec;
  std::string token;
  net::HttpClient http;
  bool busy = false;
  std::int64_t next_ns = 0;
  Maybe told;  // the deadline, once the service has told it; the service is not asked again

  net::HttpRequest request(const char* method, const std::string& url) const {
    net::HttpRequest out;
    out.method = method;
    out.url = url;
    out.retry.attempts = 1;
    out.redirects_max = 0;
    out.response_bytes_max = 64 << 10;
    out.connect_timeout_ms = out.total_timeout_ms = timeout_ms;
    if (!spec.header.empty()) out.headers.emplace_back(spec.header, spec.value);
    return out;
  }
};

// Asks the service once. If it does not answer, a later tick asks again; a lost answer only costs the early warning.
Task<void> ask(std::shared_ptr<Asking> a, CancelToken cancel) {
  a->busy = true;
  if (!a->spec.token_url.empty() && a->token.empty()) {
    net::HttpRequest wanted = a->request("PUT", a->spec.token_url);
    wanted.headers.emplace_back(a->spec.lasts_header, token_lasts_s);
    const Result<net::HttpResponse> got = co_await a->http.send(std::move(wanted), cancel);
    if (got && got->ok()) a->token = got->body;
  }
  net::HttpRequest question = a->request("GET", a->spec.url);
  if (!a->token.empty()) question.headers.emplace_back(a->spec.token_header, a->token);
  const Result<net::HttpResponse> answer = co_await a->http.send(std::move(question), cancel);
  if (answer && (answer->status == 401 || answer->status == 403)) a->token.clear();
  if (answer && answer->ok() && !a->told) a->told = told_by(a->spec, answer->body, a->loop.clock().wall_us());
  a->next_ns = a->loop.clock().monotonic_ns() + every_ns;
  a->busy = false;
}

class Metadata final : public NoticeSource {
 public:
  explicit Metadata(std::shared_ptr<Asking> asking) : asking_(std::move(asking)) {}
  // Returns the notice that is known so far, and asks the service in the background if a request is due.
  Async<Maybe> look(CancelToken token) override {
    Asking& a = *asking_;
    if (!a.busy && !a.told && a.loop.clock().monotonic_ns() >= a.next_ns) a.loop.spawn(ask(asking_, std::move(token)));
    co_return a.told;
  }

 private:
  std::shared_ptr<Asking> asking_;
};

}  // namespace

std::unique_ptr<NoticeSource> notice_of_metadata(Loop& loop, NoticeSpec spec) {
  if (spec.url.empty()) return nullptr;
  return std::make_unique<Metadata>(std::make_shared<Asking>(loop, std::move(spec)));
}

}  // namespace rille::agent
