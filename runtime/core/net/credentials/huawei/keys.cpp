#include "runtime/core/net/credentials/huawei/keys.hpp"

#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/net/credentials/plain_key.hpp"

namespace rille::net::huawei {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr int lasts_s = 6 * 3'600;
constexpr KeyNames key_names{"access", "secret", "securitytoken", "expires_at"};

// Reads IAM's answer, whose token is in a header.
Answer read_token_answer(const HttpResponse& response) {
  Answer out;
  if (Result<Value> value = Value::from_json(response.body)) out.value = std::move(*value);
  out.request_id = response.header("x-request-id");
  if (response.ok()) {
    out.value.set("X-Subject-Token", response.header("x-subject-token"));
    return out;
  }
  out.code = out.value.text("error_code", out.value["error"].text("code"));
  if (out.code.empty()) out.code = "HTTP " + std::to_string(response.status);
  out.message = out.value.text("error_msg", out.value["error"].text("message"));
  return out;
}

Loan asked_of_iam(const char* operation, Parts parts, const std::string& secret) {
  Loan out;
  out.operation = operation;
  out.options.provider = "huawei";
  out.options.read = read_token_answer;
  out.options.sign = [](Parts unsigned_parts, const Credentials&, std::int64_t) { return unsigned_parts; };
  out.who = no_keys();
  out.secrets = {secret};
  out.parts = std::move(parts);
  return out;
}

// Exchanges an identity provider's token for an IAM token, and the IAM token for temporary keys.
Async<Maybe> from_identity_provider(Loop& loop, std::string iam, CancelToken token) {
  constexpr const char* named_by = "HUAWEICLOUD_SDK_ID_TOKEN_FILE";
  const std::string provider = environment("HUAWEICLOUD_SDK_IDP_ID"), file = environment(named_by);
  if (provider.empty() || file.empty()) co_return Maybe();
  RILLE_CO_TRY(const std::string word, read_token(file, named_by));
  Value identity, methods;
  identity.set("auth", Value().set("id_token", Value().set("id", word)));
  Parts first = json_request("POST", iam, "/v3.0/OS-AUTH/id-token/tokens", identity);
  first.headers.emplace_back("X-Idp-Id", provider);
  Loan loan = asked_of_iam("id-token/tokens", std::move(first), word);
  RILLE_CO_TRY(const Value unscoped, co_await ask_loan(loop, std::move(loan), token));
  const std::string lent = unscoped.text("X-Subject-Token");
  methods.set("methods", Value::Array{Value("token")});
  methods.set("token", Value().set("id", lent).set("duration_seconds", lasts_s));
  identity.set("auth", Value().set("identity", std::move(methods)));
  Loan second =
      asked_of_iam("securitytokens", json_request("POST", iam, "/v3.0/OS-CREDENTIAL/securitytokens", identity), lent);
  RILLE_CO_TRY(const Value answer, co_await ask_loan(loop, std::move(second), token));
  RILLE_CO_TRY(FoundKeys found, read_keys(answer["credential"], key_names, "the identity provider " + provider));
  co_return found;
}

}  // namespace

std::string domain_of(const std::string& region) {
  return region.starts_with("eu-west-1") ? "myhuaweicloud.eu" : "myhuaweicloud.com";
}

CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region) {
  std::string file = environment("HUAWEICLOUD_SDK_CREDENTIALS_FILE");
  if (file.empty()) file = environment("HOME") + "/.huaweicloud/credentials";
  const std::string iam = endpoints.text("iam", "https://iam." + region + "." + domain_of(region));
  MachineKeys machine{.base = endpoints.text("metadata", "http://169.254.169.254"),
                      .session = "/meta-data/latest/api/token",
                      .lifetime_header = "X-Metadata-Token-Ttl-Seconds",
                      .session_header = "X-Metadata-Token",
                      .session_needed = false,
                      .path = "/openstack/latest/securitykey",
                      .member = "credential",
                      .names = key_names};
  if (endpoints["metadata"].is_null()) machine.firmware = {"huawei", "openstack"};
  std::vector<KeySource> sources{
      {"HUAWEICLOUD_SDK_ID_TOKEN_FILE", [&loop, iam](CancelToken t) { return from_identity_provider(loop, iam, t); }},
      keys_in_variables("HUAWEICLOUD_SDK_AK", "HUAWEICLOUD_SDK_SK", "HUAWEICLOUD_SDK_SECURITY_TOKEN"),
      keys_in_ini({file, "basic", "ak", "sk", "security_token"}),
      keys_of_machine(loop, machine)};
  return {loop, "huawei", std::move(sources),
          "set HUAWEICLOUD_SDK_AK and HUAWEICLOUD_SDK_SK, or write ~/.huaweicloud/credentials"};
}

}  // namespace rille::net::huawei
