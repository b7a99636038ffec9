#include "runtime/core/net/credentials/gcp/executable.hpp"

#include <fmt/format.h>

#include <sstream>

#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/credentials/gcp/federation.hpp"
#include "runtime/core/net/credentials/key_program.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net::gcp {

namespace {

constexpr const char* allowed_by = "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES";
constexpr std::int64_t usual_ms = 30'000, least_ms = 5'000, most_ms = 120'000;
constexpr std::size_t output_bytes_max = 1 << 20;

// The token that an earlier run of the program left in its output file, if it has not expired.
Result<std::string> token_in(const std::string& file, std::int64_t now_us, const std::string& what) {
  RILLE_TRY(const std::string text, store::read_file(file, output_bytes_max));
  const Result<Value> left = Value::from_json(text);
  if (!left || !(*left)["expiration_time"].as_number())
    return make_error(ErrorKind::auth, file + " has no token with an expiration_time",
                      "delete the file, and let the program of credential_source.executable write it again");
  return token_of_program(*left, now_us, what);
}

}  // namespace

Result<std::string> token_of_program(const Value& printed, std::int64_t now_us, const std::string& what) {
  if (!printed["success"].as_bool() || printed.number("version") != 1)
    return make_error(ErrorKind::auth, what + " printed no response of version 1",
                      "it must print {\"version\": 1, \"success\": true, ..}");
  if (!printed.boolean("success"))
    return make_error(ErrorKind::auth,
                      fmt::format("{} says: {} {}", what, printed.text("code"), telling_line(printed.text("message"))),
                      "this message is the program's, not Google's: run that program by hand to see why");
  const double end_s = printed.number("expiration_time", 1e15);
  if (end_s * 1e6 < static_cast<double>(now_us))
    return make_error(ErrorKind::auth, what + " printed an expired token", "log in again with that program");
  const std::string type = printed.text("token_type");
  const bool saml = type == "urn:ietf:params:oauth:token-type:saml2";
  const bool oidc =
      type == "urn:ietf:params:oauth:token-type:jwt" || type == "urn:ietf:params:oauth:token-type:id_token";
  const std::string token = saml ? printed.text("saml_response") : oidc ? printed.text("id_token") : "";
  if (token.empty())
    return make_error(ErrorKind::auth, fmt::format("{} printed no token of type '{}'", what, type),
                      "a jwt or id_token belongs in id_token, a saml2 in saml_response");
  return token;
}

Async<std::string> program_token(Loop& loop, Value file, std::string from, CancelToken token) {
  const Value& source = file["credential_source"]["executable"];
  const std::string command = source.text("command"), output_file = source.text("output_file");
  if (environment(allowed_by) != "1")
    co_return make_error(ErrorKind::auth,
                         from + " gets its token from a program, and running such programs is not allowed",
                         fmt::format("check its credential_source.executable.command, then set {}=1", allowed_by));
  const std::int64_t timeout_ms = source.integer("timeout_millis", usual_ms);
  if (command.empty() || timeout_ms < least_ms || timeout_ms > most_ms)
    co_return make_error(ErrorKind::auth, from + ": its credential_source.executable is not valid",
                         "it needs a command; timeout_millis is 5000 to 120000");
  KeyProgram program;
  program.what = "the program of " + from;
  if (!output_file.empty())
    if (Result<std::string> left = token_in(output_file, loop.clock().wall_us(), program.what)) co_return left;
  std::istringstream words(command);  // split at spaces without quoting, as Google's libraries do
  for (std::string word; words >> word;) program.argv.push_back(word);
  program.timeout_ms = timeout_ms;
  const std::string account = file.text("service_account_impersonation_url").empty() ? "" : account_of(file);
  program.env = {{"GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE", file.text("audience")},
                 {"GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE", file.text("subject_token_type")},
                 {"GOOGLE_EXTERNAL_ACCOUNT_ID", account},
                 {"GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE", "0"},
                 {"GOOGLE_EXTERNAL_ACCOUNT_REVOKE", "0"}};
  if (!account.empty()) program.env.emplace_back("GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL", account);
  if (!output_file.empty()) program.env.emplace_back("GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE", output_file);
  const std::string what = program.what;
  RILLE_CO_TRY(const Value printed, co_await ask_program(loop, std::move(program), std::move(token)));
  if (printed.is_null() && !output_file.empty()) co_return token_in(output_file, loop.clock().wall_us(), what);
  co_return token_of_program(printed, loop.clock().wall_us(), what);
}

}  // namespace rille::net::gcp
