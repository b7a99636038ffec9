// Temporary keys: from the metadata service of this machine, or from a service that exchanges an identity token for
// keys. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/api.hpp"

namespace rille::net {

// The names of the fields of a key document. The field `expires` holds a UTC time, or Unix seconds.
struct KeyNames {
  const char *id, *secret, *token, *expires;
};
// Reads the keys in a document. Error `auth`: the document has no key.
Result<FoundKeys> read_keys(const Value& document, const KeyNames& names, std::string from);

// How to ask a metadata service for keys.
struct MachineKeys {
  std::string base;  // such as "http://169.254.169.254"; "": do not ask this service
  // A PUT to `session` returns a session token, which later calls carry. "": the service needs no session token.
  std::string session = {}, lifetime_header = {}, session_header = {};
  bool session_needed = true;  // false: continue without a session token if the service refuses the PUT
  std::string path;            // a path that ends in "/" returns the role's name, which is then appended to the path
  std::string role = {};       // the role's name; "": ask the service
  std::string member = {};     // the field of the document that holds the keys; "": the document itself
  KeyNames names;
  // Words that this cloud writes into the firmware of its machines (firmware.hpp). If the firmware has none of them,
  // the wait for the service is short. Empty list: always wait the full time.
  std::vector<const char*> firmware = {};
};
// No keys if the service does not answer, or if the machine has no role.
KeySource keys_of_machine(Loop& loop, MachineKeys where);
Async<std::optional<FoundKeys>> ask_machine(Loop& loop, MachineKeys where, CancelToken token);

// Sends a request once, without a proxy and with a timeout of a few seconds (less if the request says so), for services
// that are either on the local network or absent.
Async<HttpResponse> ask_nearby(Loop& loop, HttpRequest request, CancelToken token);

// Reads the token in a file; call it each time, because other programs renew the token. `named_by`: the variable or
// profile that names the file, for messages. Error `auth`: the file has no token.
Result<std::string> read_token(const std::string& file, const std::string& named_by);

// A call to a service that gives temporary keys.
struct Loan {
  ApiOptions options;
  std::vector<KeySource> who;  // keys to sign the call with; no_keys() if options.sign needs none
  std::string operation;
  std::vector<std::string> secrets;  // texts to remove from every message
  Parts parts;
  Effect effect = Effect::none;
};
// The error and its causes with each secret replaced by "***", because a service may repeat what it was sent.
Error without_secrets(Error error, std::vector<std::string> secrets);
// Makes the call of a Loan. Error `auth`: the service refused.
Async<Value> ask_loan(Loop& loop, Loan loan, CancelToken token);

}  // namespace rille::net
