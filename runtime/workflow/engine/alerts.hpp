// Alerts to people by web hook or e-mail. An alert is a row from the moment it is due, so that it is not lost if the
// run ends or dies right after: the run's process, the next command, or `rille watch` sends it. Each is sent at least
// once; its `id` stays the same. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/core/net/mail.hpp"
#include "runtime/core/store/journal.hpp"

namespace rille::engine {

struct Alert {
  Alert() = default;     // not an aggregate: see loop/task.hpp
  std::string key;       // at most one alert per key
  std::string run, url;  // url: http(s)://.. or mailto:a@b,c@d
  Value body;            // sent as JSON to a web hook, as text (`message` first) by mail
};

class Alerts {
 public:
  Alerts(Loop& loop, store::Journal& journal, net::MailServer mail);
  ~Alerts();  // leaves unfinished deliveries for later
  Alerts(const Alerts&) = delete;

  // invalid: neither a web address nor a mail address.
  static Result<> check(const std::string& url);
  // Call in the transaction that finds the alert due. False: an alert with this key exists.
  static Result<bool> add(store::Db& db, const Alert& alert, std::int64_t now_us);
  Result<bool> any_due() const;
  // Sends due alerts and waits for those being sent. Failures are retried later, for a day.
  Async<> deliver();
  void deliver_soon();  // sends due alerts in the background, without waiting

 private:
  struct Due {
    std::string key, run, url;
    Value body;
    std::int64_t created_us = 0, tries = 0;
  };
  static Task<void> work(Alerts* self);
  void come_back();
  Async<> round(CancelToken closed);
  Async<std::optional<Due>> take();
  Async<> tell(const Due& due);
  Async<> settle(const Due& due, const Result<>& told);
  std::int64_t now_us() const { return loop_.clock().wall_us(); }

  Loop& loop_;
  store::Journal& journal_;
  net::MailServer mail_;
  std::unique_ptr<net::HttpClient> http_;
  CancelSource closed_;
  bool working_ = false;
  std::unique_ptr<Timer> again_;
  Result<> failure_;  // the journal's error in the last delivery round
  std::vector<Future<bool>> waiters_;
};

}  // namespace rille::engine
