// Api: calls one web service. It signs each attempt with the current time, reads the service's error codes, waits when
// the service throttles, corrects for clock skew, and renews expired credentials.
//
// Errors carry provider, operation, code, http_status, request_id, and a kind by which the lease layer decides:
//   capacity, quota        the offer is sold out, or the account's limit is reached: another offer may work
//   auth, invalid, config  the call was refused and had no effect
//   network                5xx, no answer, or an answer that is not from the service: whether the call had an effect is
//                          unknown. For a call with a lasting effect also every answer that is neither a success nor
//                          a refusal: an unreadable 2xx, 3xx, 408
//   state                  not found (http_status 404), or a conflict
// Loop thread only. An Api must outlive its calls.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

enum class Trouble {
  capacity,   // the offer is sold out
  quota,      // the account's limit is reached
  throttle,   // too many calls; this call had no effect
  transient,  // the service failed for a moment
  auth,       // the identity is wrong, or lacks the permission
  expired,    // the credentials have expired
  clock,      // the local clock is wrong by minutes
  not_found,
  conflict,  // the create token belongs to another request, or the resource is in another state
  open,      // whether the call had an effect is unknown
  invalid,
};

// What an error code means. "Prefix.*" matches every code with that prefix; the first match in a table counts.
struct Meaning {
  const char* code;
  Trouble trouble;
  const char* hint = "";
};

// A parsed response. An empty `code` means success.
struct Answer {
  Value value;
  std::string code, message, request_id;
  bool foreign = false;  // not in the service's format: the answer is truncated, or from a proxy or a login page
  std::string of = {};   // the operation that the answer names; "": it names none
};

struct ApiOptions {
  std::string provider;
  std::span<const Meaning> meanings;         // error codes of this service; searched before common_meanings
  std::span<const Meaning> common_meanings;  // error codes that all services of the cloud share
  std::function<Answer(const HttpResponse&)> read;
  std::function<Parts(Parts, const Credentials&, std::int64_t wall_us)> sign;
  std::int64_t timeout_ms = 60'000;  // time limit of one attempt
  std::int64_t throttle_ms = 500;    // upper bound of the first wait after a throttle; doubles with each wait
  std::string ca_file = {};          // for a service with a private certificate authority; "": the system's CA file
  // PEM files, for a service that authenticates by client certificate; "": none
  std::string client_certificate = {}, client_key = {};
};

// What a call changes. A call with a lasting effect is not repeated after an answer that leaves the effect unknown. A
// call that costs money also has a latest time to be sent (CreateRequest::send_by_wall_us), checked in each attempt
// once the connection is established.
struct Effect {
  bool lasts = false;
  std::int64_t send_by_wall_us = 0;  // latest time to send, by the local clock; 0: no limit

  static const Effect none, lasting;
  constexpr Effect by(std::int64_t wall_us) const { return {lasts, wall_us}; }
};
inline constexpr Effect Effect::none{false, 0}, Effect::lasting{true, 0};

class Api {
 public:
  Api(Loop& loop, ApiOptions options, CredentialChain& credentials);

  Async<Value> call(std::string operation, Parts parts, Effect effect, CancelToken token);
  // The error of an operation that the service accepted and that failed later, from the code and message it reports.
  Error failed_later(const std::string& operation, std::string code, std::string message) const;
  std::int64_t now_us() const { return loop_.clock().wall_us() + skew_us_; }  // the current time by the service's clock
  // how far the service's clock is ahead of the local clock; below two seconds: 0
  std::int64_t skew_us() const { return skew_us_; }

 private:
  Async<Value> attempt(const std::string& operation, Parts parts, Effect effect, CancelToken token, Trouble& trouble);
  Error understand(const std::string& operation, Effect effect, const HttpResponse& response, const Answer& answer,
                   Trouble& trouble) const;

  Loop& loop_;
  ApiOptions options_;
  CredentialChain& credentials_;
  HttpClient http_;
  std::int64_t skew_us_ = 0;
  std::minstd_rand dice_{std::random_device()()};  // random source for the waits between attempts
};

ErrorKind kind_of(Trouble trouble);
const Meaning* find_meaning(std::span<const Meaning> table, std::string_view code);  // null: the table has none

// How far the server's clock is ahead of `now_us`, from the Date of its answer; differences below two seconds are 0.
// Empty: the answer has no date.
std::optional<std::int64_t> skew_of(const HttpResponse& response, std::int64_t now_us);

// The error for a readable answer without a field that every answer of this call has: the answer is truncated, or not
// from the service. Its kind is `network`, because it is unknown whether the call had an effect.
Error not_theirs(const std::string& provider, const std::string& operation);

// The elements of an array; an empty list for any other value.
inline Value::Array list_of(const Value& v) { return v.as_array() ? *v.as_array() : Value::Array(); }

// Converts XML to a Value: an element with children becomes an object, an element with text a string; repeated
// elements, and children named `item` or `member`, become a list. Error `integrity`: the text is not XML.
Result<Value> read_xml(const std::string& text);

}  // namespace rille::net
