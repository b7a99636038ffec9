// Alerts to people by web hook or e-mail. An alert is a row from the moment it is due, so that it is not lost if the
// run ends or dies right after: the run's process, the next command, or `rille watch` sends it. An alert may be sent
// more than once, always with the same `id`. Loop thread only.
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
  ~Alerts();  // alerts not sent yet keep their rows and are sent later
  Alerts(const Alerts&) = delete;

  // Fails with `invalid` if `url` is neither a web address, a mail address nor env:NAME.
  static Result<> check(const std::string& url);
  // Adds an alert; call in the transaction that finds it due. Returns false if an alert with this key exists.
  static Result<bool> add(store::Db& db, const Alert& alert, std::int64_t now_us);
  Result<bool> any_due() const;
  // Sends all due alerts and waits until they are sent or have failed. A failed alert is retried later, for a day.
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
