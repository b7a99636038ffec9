#include <algorithm>
#include <memory>

#include "runtime/agent/notice.hpp"
#include "runtime/base/time.hpp"
#include "runtime/base/value.hpp"
#include "runtime/net/http.hpp"

namespace rille::agent {

namespace {

constexpr std::int64_t timeout_ms = 1'000, every_ns = 5'000'000'000;  // what Amazon advises
constexpr const char* token_lasts_s = "21600";
constexpr std::int64_t second_us = 1'000'000, google_notice_us = 30 * second_us, huawei_notice_us = 300 * second_us;
constexpr std::int64_t beijing_us = 8LL * 3'600 * second_us;

using Maybe = std::optional<std::int64_t>;

Maybe time_in(const std::string& text) {
  const Result<std::int64_t> us = parse_utc(text);
  return us ? Maybe(*us) : Maybe();
}

// {"action": "terminate", "time": "2017-09-18T08:22:00Z"}
Maybe of_aws(const std::string& body, std::int64_t) {
  const Result<Value> told = Value::from_json(body);
  return told ? time_in(told->text("time")) : Maybe();
}

Maybe of_alibaba(const std::string& body, std::int64_t) { return time_in(body); }

// "2018-08-18 12:05:33", in Beijing.
Maybe of_tencent(const std::string& body, std::int64_t) {
  if (body.size() < 19) return {};
  const Maybe there = time_in(body.substr(0, 10) + "T" + body.substr(11, 8) + "Z");
  return there ? Maybe(*there - beijing_us) : Maybe();
}

// Events of the machine; one that has begun names no time.
Maybe of_azure(const std::string& body, std::int64_t now_us) {
  const Result<Value> told = Value::from_json(body);
  if (!told || !(*told)["Events"].as_array()) return {};
  for (const Value& event : *(*told)["Events"].as_array()) {
    if (event.text("EventType") != "Preempt") continue;
    const std::int64_t ms = net::parse_retry_after_ms(event.text("NotBefore"), now_us);
    return now_us + std::max<std::int64_t>(ms, 0) * 1'000;
  }
  return {};
}

Maybe of_gcp(const std::string& body, std::int64_t now_us) {
  return body.starts_with("TRUE") ? Maybe(now_us + google_notice_us) : Maybe();
}

// It says that, not when.
Maybe of_huawei(const std::string&, std::int64_t now_us) { return now_us + huawei_notice_us; }

struct Service {
  const char *cloud, *path;
  const char *token_path, *lasts_header, *token_header;  // "": no token is asked for
  const char *header, *value;                            // that every question bears
  Maybe (*read)(const std::string& body, std::int64_t now_us);
};

// The providers' documents: docs/design/providers.md names where each is said.
constexpr Service services[] = {
    {"aws", "/latest/meta-data/spot/instance-action", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds",
     "X-aws-ec2-metadata-token", "", "", of_aws},
    {"alibaba", "/latest/meta-data/instance/spot/termination-time", "/latest/api/token",
     "X-aliyun-ecs-metadata-token-ttl-seconds", "X-aliyun-ecs-metadata-token", "", "", of_alibaba},
    {"tencent", "/latest/meta-data/spot/termination-time", "", "", "", "", "", of_tencent},
    {"azure", "/metadata/scheduledevents?api-version=2020-07-01", "", "", "", "Metadata", "true", of_azure},
    {"gcp", "/computeMetadata/v1/instance/preempted", "", "", "", "Metadata-Flavor", "Google", of_gcp},
    {"huawei", "/openstack/latest/spot/instance-action", "/meta-data/latest/api/token",
     "X-Metadata-Token-Ttl-Seconds", "X-Metadata-Token", "", "", of_huawei},
};

net::HttpOptions without_proxy() {
  net::HttpOptions out;
  out.proxy_from_environment = false;
  return out;
}

struct Asking {
  Asking(Loop& l, const Service& s, std::string u) : loop(l), service(s), url(std::move(u)), http(l, without_proxy()) {}
  Loop& loop;
  const Service& service;
  std::string url, token;
  net::HttpClient http;
  bool busy = false;
  std::int64_t next_ns = 0;
  Maybe told;                           // what was said once stands

  net::HttpRequest request(const char* method, const char* path) const {
    net::HttpRequest out;
    out.method = method;
    out.url = url + path;
    out.retry.attempts = 1;
    out.redirects_max = 0;
    out.response_bytes_max = 64 << 10;
    out.connect_timeout_ms = out.total_timeout_ms = timeout_ms;
    if (*service.header) out.headers.emplace_back(service.header, service.value);
    return out;
  }
};

// A service that is silent is asked again: nothing is lost but the warning.
Task<void> ask(std::shared_ptr<Asking> a, CancelToken cancel) {
  a->busy = true;
  if (*a->service.token_path && a->token.empty()) {
    net::HttpRequest wanted = a->request("PUT", a->service.token_path);
    wanted.headers.emplace_back(a->service.lasts_header, token_lasts_s);
    const Result<net::HttpResponse> got = co_await a->http.send(std::move(wanted), cancel);
    if (got && got->ok()) a->token = got->body;
  }
  net::HttpRequest question = a->request("GET", a->service.path);
  if (!a->token.empty()) question.headers.emplace_back(a->service.token_header, a->token);
  const Result<net::HttpResponse> answer = co_await a->http.send(std::move(question), cancel);
  if (answer && (answer->status == 401 || answer->status == 403)) a->token.clear();
  if (answer && answer->ok() && !a->told) a->told = a->service.read(answer->body, a->loop.clock().wall_us());
  a->next_ns = a->loop.clock().monotonic_ns() + every_ns;
  a->busy = false;
}

class Metadata final : public NoticeSource {
 public:
  explicit Metadata(std::shared_ptr<Asking> asking) : asking_(std::move(asking)) {}
  // What is known; the service is asked beside it.
  Async<Maybe> look(CancelToken token) override {
    Asking& a = *asking_;
    if (!a.busy && !a.told && a.loop.clock().monotonic_ns() >= a.next_ns) a.loop.spawn(ask(asking_, std::move(token)));
    co_return a.told;
  }

 private:
  std::shared_ptr<Asking> asking_;
};

}  // namespace

std::unique_ptr<NoticeSource> notice_of_metadata(Loop& loop, const std::string& cloud, std::string url) {
  for (const Service& service : services)
    if (cloud == service.cloud && !url.empty())
      return std::make_unique<Metadata>(std::make_shared<Asking>(loop, service, std::move(url)));
  return nullptr;
}

}  // namespace rille::agent
