// Rest: sends one store's requests, each signed at its attempt, and makes errors of the answers. Private to objects/.
// Loop thread only.
#pragma once

#include <random>

#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/core/net/sign/parts.hpp"
#include "runtime/core/store/objects/object_store.hpp"

namespace rille::objects {

struct StoreWords {  // what a store says of an error
  std::string code, message, region, request_id;
};

struct Call {
  std::string operation;              // "get", for messages
  std::string address;                // of what is asked, for messages
  std::function<net::Parts()> parts;  // made anew for each attempt, since the region may have changed
  const Body* body = nullptr;         // sent instead of the parts' body; must outlive the call
  std::function<Result<>(const net::HttpResponse&)> on_head;
  Sink sink;
  bool reads = false;         // a refused condition means that the object has changed: integrity
  bool refused_late = false;  // an answer with status 200 may hold an error, as of the end of an upload in parts
  // A second attempt has another effect, or is refused, where the first one has succeeded.
  bool once = false;
  bool* unknown = nullptr;  // of a call that fails: an attempt whose answer was lost may have had its effect
};

struct RestSetup {
  std::string provider;  // whose keys these are: "aws"
  std::function<Result<net::Parts>(net::Parts, const net::Credentials&, std::int64_t wall_us, std::int64_t body_bytes)>
      sign;
  std::function<StoreWords(const net::HttpResponse&)> read_error;
  // Whether another region than before is now set.
  std::function<bool(const std::string& region)> follow;
};

class Rest {
 public:
  Rest(const StoreSetup& setup, RestSetup own, net::CredentialChain chain);

  Async<net::HttpResponse> send(Call call, CancelToken token);
  Async<net::FoundKeys> keys(CancelToken token) { return chain_.get(std::move(token)); }
  std::int64_t now_us() const;  // by the store's clock
  Loop& loop() { return loop_; }

 private:
  enum class Next { end, again, wait };
  struct Course;
  Async<net::HttpResponse> attempt(const Call& call, Course& course, CancelToken token);
  Error understand(const Call& call, const net::HttpResponse& response, Course& course) const;
  Next next(Course& course, const Error& error, std::int64_t skew_before_us);

  Loop& loop_;
  RestSetup own_;
  net::CredentialChain chain_;
  net::HttpClient http_;
  std::function<Result<>(const std::string&, const std::string&)> may_connect_;
  std::int64_t wait_ms_, stall_timeout_ms_;
  std::int64_t skew_us_ = 0;
  std::minstd_rand dice_{std::random_device()()};
};

}  // namespace rille::objects
