// What people asked to be told elsewhere, by web hook or e-mail. An alert is a row from the moment in which it is due,
// so that a run that ends, or dies, right after it takes nothing with it: whoever comes by later tells it, the
// same run's process, the next command, or `rille watch`. Each is told at least once; its `id` stays the same.
// Loop thread only.
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
  std::string key;       // one per key, ever
  std::string run, url;  // url: http(s)://.. or mailto:a@b,c@d
  Value body;            // POSTed as JSON; mail says `message` and the rest below it
};

class Alerts {
 public:
  Alerts(Loop& loop, store::Journal& journal, net::MailServer mail);
  ~Alerts();  // what is under way is left for later
  Alerts(const Alerts&) = delete;

  // invalid: neither a web address nor one for mail.
  static Result<> check(const std::string& url);
  // Inside the transaction that finds it due. False: there has been one with this key.
  static Result<bool> add(store::Db& db, const Alert& alert, std::int64_t now_us);
  Result<bool> any_due() const;
  // Tells what is due, and waits for what is being told already. What fails is tried again later, for a day.
  Async<> deliver();
  void deliver_soon();  // the same, and nobody waits

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
  Result<> failure_;  // of the journal, in the last round
  std::vector<Future<bool>> waiters_;
};

}  // namespace rille::engine
