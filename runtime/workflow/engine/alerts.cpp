#include "runtime/workflow/engine/alerts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/core/base/id.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/store/audit.hpp"
#include "runtime/workflow/engine/alert_address.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t hold_us = 90'000'000;  // how long an alert is reserved for the process that sends it
constexpr std::int64_t first_pause_us = 10'000'000, longest_pause_us = 1'800'000'000;
constexpr std::int64_t give_up_after_us = 86'400'000'000;

constexpr const char* by_name = "env:";  // prefix of an address that names an environment variable

bool by_mail(const std::string& url) { return url.starts_with("mailto:"); }

// The part of an address that may be shown: of a web hook's URL only scheme and host, because the rest may be secret.
std::string shown(const std::string& url) {
  if (by_mail(url) || url.starts_with(by_name)) return url;
  const std::string clear = net::redact_url(url);
  const std::size_t host = clear.find("://");
  return clear.substr(0, clear.find('/', host == std::string::npos ? 0 : host + 3));
}

void cut(std::string& text, const std::string& part, const std::string& by) {
  if (part.size() < 2) return;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size())
    text.replace(at, part.size(), by);
}

// Removes the secret URL from a receiver's error, because some servers reply with the requested path.
Error without_address(Error e, const std::string& url) {
  const std::string host = shown(url);
  const std::size_t scheme = url.find("://"), path = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  for (std::string* text : {&e.message, &e.hint, &e.resource}) {
    cut(*text, url, host);
    cut(*text, net::redact_url(url), host);
    if (path == std::string::npos) continue;
    cut(*text, url.substr(path), "/..");
    cut(*text, url.substr(path, url.find('?', path) - path), "/..");
  }
  e.cause = nullptr;
  return e;
}

// Returns the address to send to: "env:NAME" is replaced by the variable's value, which is never stored.
Result<std::string> address(const std::string& url) {
  if (!url.starts_with(by_name)) return url;
  const std::string name = url.substr(4);
  const char* value = std::getenv(name.c_str());
  const std::string found = value ? value : "";
  if (found.empty())
    return make_error(ErrorKind::config,
                      fmt::format("alerts go to the address in the environment variable {}, which is not set", name),
                      fmt::format("set {} where runs, and rille watch, are started", name));
  if (found.starts_with(by_name) || !Alerts::check(found))
    return make_error(ErrorKind::config,
                      fmt::format("alerts cannot be sent to the address in the environment variable {}", name),
                      "use a URL such as https://example.org/hook, or mailto:me@example.org");
  return found;
}

std::string subject(const Value& body) {
  return fmt::format("Rille: {}{}", body.text("event"), body.text("run").empty() ? "" : " in run " + body.text("run"));
}

std::string text(const Value& body) {
  std::string out = body.text("message") + "\n\n";
  if (const Value::Object* fields = body.as_object())
    for (const auto& [name, value] : *fields)
      if (name != "message")
        out += fmt::format("{}: {}\n", name, value.as_string() ? *value.as_string() : value.to_json());
  return out;
}

}  // namespace

Alerts::Alerts(Loop& loop, store::Journal& journal, net::MailServer mail)
    : loop_(loop), journal_(journal), mail_(std::move(mail)) {}

Alerts::~Alerts() { closed_.cancel(make_error(ErrorKind::cancelled, "the engine is closed")); }

Result<> Alerts::check(const std::string& url) {
  if (url.starts_with("http://") || url.starts_with("https://")) return {};
  if (url.starts_with(by_name)) {
    constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    if (url.size() > 4 && url.find_first_not_of(letters, 4) == std::string::npos) return {};
    return make_error(
        ErrorKind::invalid,
        "alerts cannot be sent to 'env:..': expected the name of an environment variable after env:",
        "use env:SLACK_URL, for example, where the variable SLACK_URL has https://.. or mailto:me@example.org");
  }
  if (!by_mail(url))
    return make_error(ErrorKind::invalid, fmt::format("alerts cannot be sent to '{}'", shown(url)),
                      "use https://example.org/hook, mailto:me@example.org, or env:NAME of an environment variable "
                      "with such an address");
  RILLE_TRY(std::vector<std::string> to, net::read_mailto(url));
  return {};
}

Result<bool> Alerts::add(store::Db& db, const Alert& alert, std::int64_t now_us) {
  bool to_nobody = alert.url.empty();
  RILLE_CHECK(db.run("INSERT OR IGNORE INTO alerts(key,run,url,body,created_us,next_us,told_us) VALUES(?,?,?,?,?,?,?)",
                     {alert.key, alert.run, alert.url, alert.body.to_json(), now_us, now_us,
                      to_nobody ? store::SqlValue(now_us) : store::SqlValue()}));
  return db.changes() == 1;
}

std::string alert_address_key(const std::string& run) { return "address:" + run; }

Result<> keep_alert_address(store::Db& db, const std::string& run, const std::string& url, std::int64_t now_us) {
  const std::string key = alert_address_key(run);
  if (url.empty()) return db.run("DELETE FROM alerts WHERE key=?", {key});
  return db.run("INSERT OR REPLACE INTO alerts(key,run,url,body,created_us,next_us,told_us) VALUES(?,?,?,'{}',?,?,?)",
                {key, run, url, now_us, now_us, now_us});
}

Result<bool> Alerts::any_due() const {
  bool due = false;
  RILLE_CHECK(journal_.reader().query("SELECT 1 FROM alerts WHERE told_us IS NULL AND next_us<=? LIMIT 1", {now_us()},
                                      [&](const store::Row&) { due = true; }));
  return due;
}

// Takes a due alert that no other process is sending, and reserves it for a while.
Async<std::optional<Alerts::Due>> Alerts::take() {
  auto due = std::make_shared<std::optional<Due>>();
  store::Journal::Write write = [due, now = now_us()](store::Db& db) -> Result<> {
    RILLE_CHECK(
        db.query("SELECT key,run,url,body,created_us,tries FROM alerts WHERE told_us IS NULL AND next_us<=? "
                 "ORDER BY created_us LIMIT 1",
                 {now}, [&](const store::Row& row) {
                   Due d;
                   d.key = row.text(0), d.run = row.text(1), d.url = row.text(2);
                   d.created_us = row.integer(4), d.tries = row.integer(5);
                   if (Result<Value> body = Value::from_json(row.text(3))) d.body = std::move(*body);
                   *due = std::move(d);
                 }));
    if (!*due) return {};
    return db.run("UPDATE alerts SET tries=tries+1, next_us=? WHERE key=?", {now + hold_us, (**due).key});
  };
  RILLE_CO_CHECK(co_await journal_.commit(std::move(write)));
  co_return std::move(*due);
}

Async<> Alerts::tell(const Due& due) {
  Value body = due.body;
  body.set("id", due.key);
  RILLE_CO_TRY(const std::string url, address(due.url));
  if (by_mail(url)) {
    net::Mail mail;
    RILLE_CO_TRY(mail.to, net::read_mailto(url));
    mail.subject = subject(body);
    mail.text = text(body);
    mail.id = sha256_hex(due.key).substr(0, 32);
    co_return co_await net::send_mail(loop_, mail_, std::move(mail), closed_.token());
  }
  if (!http_) http_ = std::make_unique<net::HttpClient>(loop_);
  net::HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.headers = {{"content-type", "application/json"}, {"idempotency-key", due.key}};
  request.body = body.to_json();
  request.total_timeout_ms = 30'000;
  request.retry.attempts = 1;  // the HTTP client does not retry: the alert's row counts the tries
  const Result<net::HttpResponse> answer = co_await http_->send(request, closed_.token());
  if (!answer) co_return without_address(answer.error(), url);
  if (answer->ok()) co_return success();
  co_return without_address(net::status_error(request, *answer), url);
}

Async<> Alerts::settle(const Due& due, const Result<>& told) {
  std::int64_t now = now_us();
  if (told) {
    store::Journal::Write done = [key = due.key, now](store::Db& db) {
      return db.run("UPDATE alerts SET told_us=?, error='' WHERE key=?", {now, key});
    };
    co_return co_await journal_.commit(std::move(done));
  }
  bool last = now - due.created_us >= give_up_after_us;
  std::int64_t pause = std::min(longest_pause_us, first_pause_us << std::min<std::int64_t>(due.tries, 20));
  Value event;
  event.set("event", "warning").set("what", last ? "an alert is given up" : "an alert could not be sent");
  event.set("to", shown(due.url));
  event.set("message", told.error().message).set("hint", told.error().hint);
  bool tells = last || due.tries == 0;
  store::Journal::Write later = [=, key = due.key, run = due.run, why = told.error().message,
                                 line = event.to_json()](store::Db& db) -> Result<> {
    RILLE_CHECK(db.run("UPDATE alerts SET next_us=?, told_us=?, error=? WHERE key=?",
                       {now + pause, last ? store::SqlValue(now) : store::SqlValue(), why, key}));
    return tells ? store::append_event(db, run, now, "warning", line) : Result<>();
  };
  co_return co_await journal_.commit(std::move(later));
}

Async<> Alerts::round(CancelToken closed) {
  while (true) {
    RILLE_CO_TRY(std::optional<Due> due, co_await take());
    if (!due) co_return success();
    Result<> told = co_await tell(*due);
    if (closed.cancelled()) co_return closed.reason();  // `this` was destroyed meanwhile
    RILLE_CO_CHECK(co_await settle(*due, told));
  }
}

Task<void> Alerts::work(Alerts* self) {
  CancelToken closed = self->closed_.token();
  Result<> how = co_await self->round(closed);
  if (closed.cancelled()) co_return;
  self->failure_ = std::move(how);
  self->working_ = false;
  self->come_back();
  for (const Future<bool>& w : std::exchange(self->waiters_, {})) w.set(true);
}

// Retries failed alerts in this process while the process lives.
void Alerts::come_back() {
  std::int64_t next_us = -1;
  auto read = [&](const store::Row& row) {
    if (!row.null(0)) next_us = row.integer(0);
  };
  Result<> looked = journal_.reader().query("SELECT min(next_us) FROM alerts WHERE told_us IS NULL", {}, read);
  if (!looked || next_us < 0) return;
  std::int64_t ms = std::max<std::int64_t>((next_us - now_us()) / 1000 + 1, 100);
  again_ = std::make_unique<Timer>(loop_, ms, [this] { deliver_soon(); });
}

void Alerts::deliver_soon() {
  auto unwatched = [](Alerts* a) -> Task<void> { (void)co_await a->deliver(); };  // failures are in the audit trail
  loop_.spawn(unwatched(this));
}

Async<> Alerts::deliver() {
  if (!working_) {
    RILLE_CO_TRY(bool due, any_due());
    if (!due) co_return success();
    working_ = true;
    loop_.spawn(work(this));
  }
  Future<bool> done(loop_);
  waiters_.push_back(done);
  co_await done;
  co_return failure_;
}

}  // namespace rille::engine
