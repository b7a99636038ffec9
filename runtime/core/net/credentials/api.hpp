// Api: the caller of one web service. It signs each attempt with the current time, reads the service's error codes,
// waits when it is throttled, corrects for clock skew, and renews credentials that have expired.
//
// Errors carry provider, operation, code, http_status and request_id, and the kind that the lease layer decides by:
//   capacity, quota    the offer or the account is exhausted: another one may work
//   auth, invalid, config
//   network            5xx, no answer, or an answer that is not the service's: whether the call had an effect is
//                      unknown. For a call with a lasting effect also every answer that is neither a success nor a
//                      refusal: a 2xx that cannot be read, 3xx, 408
//   state              not found (http_status 404), or a conflict
// Loop thread only. It must outlive its calls.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

enum class Trouble {
  capacity,   // sold out
  quota,      // the account's limit is reached
  throttle,   // too many calls; this one had no effect
  transient,  // the service failed for a moment
  auth,       // the identity is wrong, or lacks a right
  expired,    // the credentials have expired
  clock,      // the local clock is wrong
  not_found,
  conflict,  // the create token belongs to another request, or the resource is in another state
  open,      // whether the call had an effect is unknown
  invalid,
};

// What an error code means. "Prefix.*" matches every code with that prefix; the first match counts.
struct Meaning {
  const char* code;
  Trouble trouble;
  const char* hint = "";
};

// A parsed response. `code` "": a success.
struct Answer {
  Value value;
  std::string code, message, request_id;
  bool foreign = false;  // not in the service's format: from a proxy or a login page, or truncated
  std::string of = {};   // the operation that the answer names; "": it names none
};

struct ApiOptions {
  std::string provider;
  std::span<const Meaning> meanings;         // this service's codes; searched first
  std::span<const Meaning> common_meanings;  // codes that all services of the cloud share
  std::function<Answer(const HttpResponse&)> read;
  std::function<Parts(Parts, const Credentials&, std::int64_t wall_us)> sign;
  std::int64_t timeout_ms = 60'000;  // of one attempt
  std::int64_t throttle_ms = 500;    // upper bound of the first wait after a throttle; doubles each time
  std::string ca_file = {};          // for a service with its own certificate; "": the system's
  std::string client_certificate = {}, client_key = {};  // PEM, for a service that authenticates by client certificate
};

// A call with a lasting effect is not repeated after an answer that leaves the effect open. A call that costs money
// also has a latest time to be sent (CreateRequest::send_by_wall_us), checked in each attempt once the connection
// stands.
struct Effect {
  bool lasts = false;
  std::int64_t send_by_wall_us = 0;  // by the local clock; 0: any time

  static const Effect none, lasting;
  constexpr Effect by(std::int64_t wall_us) const { return {lasts, wall_us}; }
};
inline constexpr Effect Effect::none{false, 0}, Effect::lasting{true, 0};

class Api {
 public:
  Api(Loop& loop, ApiOptions options, CredentialChain& credentials);

  Async<Value> call(std::string operation, Parts parts, Effect effect, CancelToken token);
  // The error of an operation that was accepted and failed later, from the code and message of its outcome.
  Error failed_later(const std::string& operation, std::string code, std::string message) const;
  std::int64_t now_us() const { return loop_.clock().wall_us() + skew_us_; }  // by the service's clock
  std::int64_t skew_us() const { return skew_us_; }  // how far the service's clock is ahead; 0: less than two seconds

 private:
  Async<Value> attempt(const std::string& operation, Parts parts, Effect effect, CancelToken token, Trouble& trouble);
  Error understand(const std::string& operation, Effect effect, const HttpResponse& response, const Answer& answer,
                   Trouble& trouble) const;
  void learn_skew(const HttpResponse& response);

  Loop& loop_;
  ApiOptions options_;
  CredentialChain& credentials_;
  HttpClient http_;
  std::int64_t skew_us_ = 0;
  std::minstd_rand dice_{std::random_device()()};  // jitter of the waits
};

// The error for an answer that was read but lacks a field that every answer of this call has: truncated, or not from
// the service. network: whether the call had an effect is unknown, and the missing field says nothing.
Error not_theirs(const std::string& provider, const std::string& operation);

// The elements of an array; of any other value, none.
inline Value::Array list_of(const Value& v) { return v.as_array() ? *v.as_array() : Value::Array(); }

// XML as a Value: an element with children becomes an object, a leaf a string; repeated elements, and children named
// `item` or `member`, become a list. integrity: not XML.
Result<Value> read_xml(const std::string& text);

}  // namespace rille::net
