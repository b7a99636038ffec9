// Whatever the files and answers say in which clouds' tools keep keys, reading them stays within their bytes.
#include "runtime/core/net/credentials/alibaba/keys.hpp"
#include "runtime/core/net/credentials/aws/sso.hpp"
#include "runtime/core/net/credentials/azure/keys.hpp"
#include "runtime/core/net/credentials/gcp/executable.hpp"
#include "runtime/core/net/credentials/gcp/federation.hpp"
#include "runtime/core/net/credentials/key_program.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/net/sign/certificate.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto& [name, section] : net::parse_ini(text)) {
    fuzz_check(name.size() <= size && section.size() <= size, "no more than there is");
    (void)alibaba::profile_of_section(section);
  }
  const Result<std::optional<aws::Sso>> sso = aws::sso_of(net::parse_ini(text), "a");
  fuzz_check(!sso || !*sso || !((*sso)->account.empty() || (*sso)->region.empty()), "a sign-in knows where");
  const std::string line = net::telling_line(text);
  fuzz_check(line.size() <= 402 && line.find('\n') == std::string::npos, "one short line");
  const Result<net::ClientCertificate> certificate = net::read_certificate(text, "word");
  fuzz_check(!certificate || !certificate->chain.empty(), "a certificate is one");
  const Result<Value> document = Value::from_json(text);
  if (document) {
    for (const char* name : {"", "a"}) (void)alibaba::profile_in(*document, name);
    (void)gcp::account_of(*document);
    constexpr net::KeyNames names{"AccessKeyId", "SecretAccessKey", "Token", "Expiration"};
    const Result<net::FoundKeys> keys = net::read_keys(*document, names, "there");
    fuzz_check(!keys || !keys->keys.secret.empty(), "keys have a secret");
    const Result<aws::SsoLogin> login = aws::read_sso_login(*document);
    fuzz_check(!login || !login->token.empty(), "a sign-in has a token");
    const Result<net::FoundKeys> process = aws::read_process_keys(*document, "a", 1);
    fuzz_check(!process || process->expires_wall_us == 0 || process->expires_wall_us > 1, "keys are not over");
    const Result<std::string> printed = gcp::token_of_program(*document, 1, "it");
    fuzz_check(!printed || !printed->empty(), "a token is not empty");
    (void)azure::read_az_token(*document);
  }
  for (const Value& format : {Value(), Value().set("type", "json").set("subject_token_field_name", "Token")}) {
    const Result<std::string> token = gcp::subject_token_in(text, format, "there");
    fuzz_check(!token || !token->empty(), "a token is not empty");
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"[default]\naws_access_key_id = AKIA\naws_secret_access_key = s\n[profile a]\nsource_profile = default\n",
          "[default]\ntype = ram_role_arn\nrole_arn = r\nrole_session_expiration = 900\n",
          R"({"AccessKeyId": "i", "SecretAccessKey": "s", "Token": "t", "Expiration": "2030-01-01T00:00:00Z"})",
          R"({"current": "a", "profiles": [{"name": "a", "mode": "AK", "access_key_id": "i", "expired_seconds": 9}]})",
          "[profile a]\nsso_session = b\nsso_account_id = 1\nsso_role_name = r\n[sso-session b]\nsso_region = x\n"
          "sso_start_url = u\n",
          R"({"accessToken": "t", "expiresAt": "2030-01-01T00:00:00UTC", "refreshToken": "r", "clientId": "c"})",
          R"({"Version": 1, "AccessKeyId": "i", "SecretAccessKey": "s", "Expiration": "2030-01-01T00:00:00Z"})",
          R"({"version": 1, "success": true, "token_type": "urn:ietf:params:oauth:token-type:jwt", "id_token": "t"})",
          R"({"accessToken": "t", "expires_on": 1900000000, "expiresOn": "2030-03-17 17:46:40.123456"})",
          "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n",
          R"({"service_account_impersonation_url": "https://x/serviceAccounts/a@b:generateAccessToken"})"};
}

std::vector<std::string> fuzz_words() {
  return {"[", "]", "profile ", "=", "\n", "\"", "{", "}", "1e308", "-1e308", "Expiration", "profiles", "null"};
}
