#include "runtime/workflow/provider/remote/remote.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/send_by.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/core/net/loopback.hpp"
#include "runtime/workflow/provider/outcome.hpp"

namespace rille::provider {

namespace {

constexpr std::int64_t answer_bytes_max = 16 << 20;

class Remote final : public Provider {
 public:
  Remote(Loop& loop, std::string url, Traits traits) : url_(std::move(url)), traits_(traits), http_(loop) {}
  const std::string& name() const override { return name_; }
  const Traits& traits() const override { return traits_; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    Value nothing = Value::Object{};
    RILLE_CO_TRY(Value answer, co_await call("offers", std::move(nothing), token));
    RILLE_CO_TRY(std::vector<Offer> all, read_list<Offer>(answer, "offers"));
    std::erase_if(all, [&](const Offer& o) { return !o.matches(query); });
    for (Offer& o : all) o.provider = name_;
    std::stable_sort(all.begin(), all.end(), [](const Offer& a, const Offer& b) {
      // as unsigned, so that an unknown price (-1) sorts last
      return static_cast<std::uint64_t>(a.dollars()) < static_cast<std::uint64_t>(b.dollars());
    });
    co_return all;
  }

  Async<Machine> create(CreateRequest request, CancelToken token) override {
    RILLE_CO_TRY(Value answer, co_await call("create", request.to_value(), token, request.send_by_wall_us));
    co_return Machine::from_value(answer);
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Value asked;
    asked.set("id", id);
    Result<Value> answer = co_await call("describe", std::move(asked), token);
    if (answer) co_return Machine::from_value(*answer);
    if (answer.error().http_status != 404) co_return answer.error();
    Machine gone;
    gone.id = id;
    co_return gone;
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    Value asked;
    asked.set("tag", tag_prefix);
    RILLE_CO_TRY(Value answer, co_await call("list", std::move(asked), token));
    co_return read_list<Machine>(answer, "machines");
  }

  Async<> terminate(std::string id, CancelToken token) override {
    Value asked;
    asked.set("id", id);
    Result<Value> answer = co_await call("terminate", std::move(asked), token);
    if (!answer && answer.error().http_status != 404) co_return answer.error();
    co_return success();
  }

  Async<std::vector<Bill>> bill(BillQuery query, CancelToken token) override {
    Value::Array machines(query.machines.begin(), query.machines.end());
    Value asked;
    asked.set("machines", std::move(machines)).set("tag", query.tag).set("since_us", query.since_us);
    RILLE_CO_TRY(Value answer, co_await call("bill", std::move(asked), token));
    std::vector<Bill> out;
    for (const Value& b : answer["bills"].as_array() ? *answer["bills"].as_array() : Value::Array()) {
      Bill bill;
      bill.machine_id = b.text("machine_id");
      bill.tag = b.text("tag");
      bill.from_us = b.integer("from_us");
      bill.to_us = b.integer("to_us");
      bill.micros = b.integer("micros");
      bill.final = b.boolean("final");
      out.push_back(std::move(bill));
    }
    co_return out;
  }

 private:
  template <typename T>
  static Result<std::vector<T>> read_list(const Value& answer, const char* field) {
    std::vector<T> out;
    const Value::Array* items = answer[field].as_array();
    if (!items)
      return make_error(ErrorKind::integrity,
                        fmt::format("remote: the response has no list '{}': {}", field, answer.to_json()),
                        "mend the service behind `url`: docs/manual/providers/remote.md says what it must answer");
    for (const Value& item : *items) {
      RILLE_TRY(T one, T::from_value(item));
      out.push_back(std::move(one));
    }
    return out;
  }

  // Sends the call once; only the lease layer decides whether to repeat a failed call.
  Async<Value> call(std::string operation, Value body, CancelToken token, std::int64_t send_by_wall_us = 0) {
    net::HttpRequest request;
    request.method = "POST";
    request.url = url_ + "/" + operation;
    request.headers = {{"Content-Type", "application/json"}};
    request.body = body.to_json();
    request.retry.attempts = 1;
    request.total_timeout_ms = traits_.create_timeout_ms;
    request.response_bytes_max = answer_bytes_max;
    request.idempotent = true;
    request.at_send = [this, send_by_wall_us] {
      return check_send_by(send_by_wall_us, http_.loop().clock().wall_us());
    };
    net::HttpRequest sent = request;
    Result<net::HttpResponse> response = co_await http_.send(std::move(request), token);
    if (!response) co_return named(response.error(), operation);
    Result<Value> answer = Value::from_json(response->body);
    if (response->ok() && answer) co_return answer;
    if (response->ok())
      co_return named(make_error(ErrorKind::integrity, fmt::format("{}: {}", sent.url, answer.error().message),
                                 "the service must answer with JSON: docs/manual/providers/remote.md"),
                      operation);
    Error e = net::status_error(sent, *response);
    if (answer && !(*answer)["error"].is_null()) {
      Error told = error_from_value((*answer)["error"]);
      e.kind = told.kind;
      e.message = told.message;
      e.retryable = told.retryable || e.retryable;
    }
    e.http_status = response->status;
    co_return named(std::move(e), operation);
  }

  Error named(Error error, const std::string& operation) const {
    error.provider = name_;
    error.operation = operation;
    return error;
  }

  std::string url_, name_ = "remote";
  Traits traits_;
  net::HttpClient http_;
};

}  // namespace

namespace {

// A request without TLS to this machine itself cannot be read or changed on a network.
bool is_this_machine(std::string_view authority) {
  if (authority.find('@') != authority.npos) return false;  // a user name that looks like a host
  const std::size_t end = authority.starts_with('[') ? authority.find(']') : authority.find(':') - 1;
  const std::string host(authority.substr(0, end + 1));
  const std::string_view port = authority.substr(host.size());
  if (!port.empty() && port[0] != ':') return false;
  return host != "::1" && net::is_loopback_host(host);  // an IPv6 address needs its brackets in a URL
}

}  // namespace

Result<std::unique_ptr<Provider>> make_remote_provider(Loop& loop, const Value& settings) {
  std::string url = settings.text("url");
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return make_error(ErrorKind::config, "remote: url is missing", "write {\"url\": \"https://..\", \"traits\": {..}}");
  const std::string_view authority = std::string_view(url).substr(url.find("//") + 2);
  if (url.starts_with("http://") && !is_this_machine(authority.substr(0, authority.find('/'))))
    return make_error(ErrorKind::config, fmt::format("remote: '{}' is not encrypted", url),
                      "write https://; http:// is for a service on this machine (127.0.0.1, localhost)");
  while (url.ends_with('/')) url.pop_back();
  RILLE_TRY(Traits traits, read_traits(settings["traits"], {}));
  return std::unique_ptr<Provider>(std::make_unique<Remote>(loop, std::move(url), traits));
}

}  // namespace rille::provider
