// Api: one cloud's web service, as its driver calls it. It signs each attempt with a fresh date, understands the
// service's error codes, waits when it is told to slow down, corrects the clock, and renews credentials that expired.
//
// Errors have provider, operation, code, http_status and request_id, and the kind that the lease layer decides by:
//   capacity, quota    the offer, the account: another one may do
//   auth, invalid, config
//   network            5xx, no answer, or one that is not the service's: whether the call had an effect is unknown. Of
//                      a call with a lasting effect also what is no refusal: a success without a meaning, 3xx, 408
//   state              not found (http_status 404), or a conflict
// Loop thread only. It must outlive its calls.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/sign/parts.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::cloud {

enum class Trouble {
  capacity,   // nothing left of this
  quota,      // the account may not have more
  throttle,   // asked too often; nothing was done
  transient,  // their fault, for a moment
  auth,       // who we are, or may do
  expired,    // the credentials' time is over
  clock,      // our clock is off
  not_found,
  conflict,  // the token was used with another request, the thing is in another state
  open,      // nobody says whether it was done
  invalid,
};

// What an error code means. "Prefix.*" stands for all that begin so; the first that fits counts.
struct Meaning {
  const char* code;
  Trouble trouble;
  const char* hint = "";
};

// An answer, read. `code` "": a success.
struct Answer {
  Value value;
  std::string code, message, request_id;
  bool foreign = false;  // it has not the form of the service's: a proxy's, a login page's, or cut short
  std::string of = {};   // the operation that it says it answers; "": it does not say
};

struct ApiOptions {
  std::string provider;
  std::span<const Meaning> meanings;
  std::function<Answer(const net::HttpResponse&)> read;
  std::function<net::Parts(net::Parts, const net::Credentials&, std::int64_t wall_us)> sign;
  std::int64_t timeout_ms = 60'000;  // of one attempt
  std::int64_t throttle_ms = 500;    // the first wait after "asked too often", at most; then twice that, and so on
  std::string ca_file = {};          // of a service with a certificate of its own; "": the system's
  std::string client_certificate = {}, client_key = {};  // PEM; where it knows its clients by certificates
};

// What a call does. A lasting one is not sent again after an answer that leaves its effect open. One that is paid for
// says by when it must leave: CreateRequest::send_by_wall_us, held to in each attempt once the connection stands.
struct Effect {
  bool lasts = false;
  std::int64_t send_by_wall_us = 0;  // by our clock; 0: any time

  static const Effect none, lasting;
  constexpr Effect by(std::int64_t wall_us) const { return {lasts, wall_us}; }
};
inline constexpr Effect Effect::none{false, 0}, Effect::lasting{true, 0};

class Api {
 public:
  Api(Loop& loop, ApiOptions options, CredentialChain& credentials);

  Async<Value> call(std::string operation, net::Parts parts, Effect effect, CancelToken token);
  // The error of an operation that was accepted and failed later, as its outcome tells it.
  Error failed_later(const std::string& operation, std::string code, std::string message) const;
  std::int64_t now_us() const { return loop_.clock().wall_us() + skew_us_; }  // by the service's clock
  std::int64_t skew_us() const { return skew_us_; }  // of that clock, ahead of ours; 0: less than two seconds

 private:
  Async<Value> attempt(const std::string& operation, net::Parts parts, Effect effect, CancelToken token,
                       Trouble& trouble);
  Error understand(const std::string& operation, Effect effect, const net::HttpResponse& response, const Answer& answer,
                   Trouble& trouble) const;
  void learn_skew(const net::HttpResponse& response);

  Loop& loop_;
  ApiOptions options_;
  CredentialChain& credentials_;
  net::HttpClient http_;
  std::int64_t skew_us_ = 0;
  std::minstd_rand dice_{std::random_device()()};  // for waits: their spread, nothing secret
};

// Of an answer that lacks what each answer of that call has, though it was read: another's, or cut short. network:
// whether the call had an effect is unknown, and nothing can be said of what it should have named.
Error not_theirs(const std::string& provider, const std::string& operation);

// The elements of a list in an answer; of anything else, none.
inline Value::Array list_of(const Value& v) { return v.as_array() ? *v.as_array() : Value::Array(); }

// The service's XML as a Value: an element with children is an object, one without a text; several of one name, and
// children named `item` or `member`, make a list. integrity: it is no XML.
Result<Value> read_xml(const std::string& text);

}  // namespace rille::provider::cloud
