// Temporary keys: from the metadata service of this machine, or from a service that exchanges an identity token for
// them. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/api.hpp"

namespace rille::net {

// The names of a key document's fields. `expires`: a UTC time, or Unix seconds.
struct KeyNames {
  const char *id, *secret, *token, *expires;
};
// auth: the document has no key.
Result<FoundKeys> read_keys(const Value& document, const KeyNames& names, std::string from);

// Where a metadata service keeps keys, and how it is asked.
struct MachineKeys {
  std::string base;  // "http://169.254.169.254"; "": do not ask
  // A PUT to `session` gives a session token, which later calls carry. "": the service wants none.
  std::string session = {}, lifetime_header = {}, session_header = {};
  bool session_needed = true;  // false: go on without a session if the PUT is refused
  std::string path;            // with a trailing "/" it lists the role, whose name is then appended
  std::string role = {};       // the role, if it is known already
  std::string member = {};     // the field of the document that holds the keys; "": the document itself
  KeyNames names;
  // Words that this cloud writes into the firmware of its machines (firmware.hpp). If none of them is there, the wait
  // for the service is short. Empty: assume that the service is there.
  std::vector<const char*> firmware = {};
};
// Nothing if the service does not answer, or the machine has no role.
KeySource keys_of_machine(Loop& loop, MachineKeys where);
Async<std::optional<FoundKeys>> ask_machine(Loop& loop, MachineKeys where, CancelToken token);

// One attempt without a proxy and with a timeout of seconds (or less, if the request says so), for services that are
// either on the local network or absent.
Async<HttpResponse> ask_nearby(Loop& loop, HttpRequest request, CancelToken token);

// The token in a file; read at each call, since other programs renew it. `named_by`: the variable or profile that names
// the file, for the error. auth: the file has no token.
Result<std::string> read_token(const std::string& file, const std::string& named_by);

// A call to a service that gives temporary keys.
struct Loan {
  ApiOptions options;
  std::vector<KeySource> who;  // the signer's keys; no_keys() if options.sign needs none
  std::string operation;
  std::vector<std::string> secrets;  // removed from every message
  Parts parts;
  Effect effect = Effect::none;
};
// The error and its causes with each secret replaced by "***": a service may repeat what it was sent.
Error without_secrets(Error error, std::vector<std::string> secrets);
// auth: refused.
Async<Value> ask_loan(Loop& loop, Loan loan, CancelToken token);

}  // namespace rille::net
