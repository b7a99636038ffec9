// Keys that are lent for a while: by the metadata service of the machine that we run on, or by a service that takes an
// identity for them, as a token in a file that others renew. Loop thread only.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/api.hpp"

namespace rille::provider::cloud {

// What a document with keys calls its parts. `expires`: a time in UTC, or seconds of Unix time.
struct KeyNames {
  const char *id, *secret, *token, *expires;
};
// auth: there is no key in it.
Result<FoundKeys> read_keys(const Value& document, const KeyNames& names, std::string from);

// Where a metadata service has keys, and what it wants to be asked with.
struct MachineKeys {
  std::string base;  // "http://169.254.169.254"; "": nobody is asked
  // A word is given at `session` that later calls bear. "": it wants none.
  std::string session = {}, lifetime_header = {}, session_header = {};
  bool session_needed = true;  // false: an older mode does without
  std::string path;            // with a "/" at its end: a role's name is told there, and goes behind it
  std::string role = {};       // its name, where it is known
  std::string member = {};     // of the document, that has the keys; "": itself
  KeyNames names;
  // Words of which one stands in the firmware of that cloud's machines (firmware.hpp): where none does, the service is
  // hardly waited for. None: it is there.
  std::vector<const char*> firmware = {};
};
// None where nobody answers, or no role is given to the machine.
KeySource keys_of_machine(Loop& loop, MachineKeys where);
Async<std::optional<FoundKeys>> ask_machine(Loop& loop, MachineKeys where, CancelToken token);

// One try, without a proxy, for seconds, fewer where the request says so: of what is near, or not there at all.
Async<net::HttpResponse> ask_nearby(Loop& loop, net::HttpRequest request, CancelToken token);

// The token in a file, read each time, for it is renewed. auth: there is none; `named_by`: what has named the file.
Result<std::string> read_token(const std::string& file, const std::string& named_by);

// A call of a service that lends keys.
struct Loan {
  ApiOptions options;
  std::vector<KeySource> who;  // who signs; no_keys(): options.sign does without
  std::string operation;
  std::vector<std::string> secrets;  // what no message may repeat
  net::Parts parts;
  Effect effect = Effect::none;
};
// The error, and its causes, with "***" for each secret that a service has told back.
Error without_secrets(Error error, std::vector<std::string> secrets);
// auth: it refuses.
Async<Value> ask_loan(Loop& loop, Loan loan, CancelToken token);

}  // namespace rille::provider::cloud
