// Whatever the files and answers say in which clouds' tools keep keys, reading them stays within their bytes.
#include "runtime/provider/alibaba/keys.hpp"
#include "runtime/provider/cloud/lent_keys.hpp"
#include "runtime/provider/gcp/federation.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::provider;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto& [name, section] : cloud::parse_ini(text)) {
    fuzz_check(name.size() <= size && section.size() <= size, "no more than there is");
    (void)alibaba::profile_of_section(section);
  }
  const Result<Value> document = Value::from_json(text);
  if (document) {
    for (const char* name : {"", "a"}) (void)alibaba::profile_in(*document, name);
    (void)gcp::account_of(*document);
    constexpr cloud::KeyNames names{"AccessKeyId", "SecretAccessKey", "Token", "Expiration"};
    const Result<cloud::FoundKeys> keys = cloud::read_keys(*document, names, "there");
    fuzz_check(!keys || !keys->keys.secret.empty(), "keys have a secret");
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
          R"({"service_account_impersonation_url": "https://x/serviceAccounts/a@b:generateAccessToken"})"};
}

std::vector<std::string> fuzz_words() {
  return {"[", "]", "profile ", "=", "\n", "\"", "{", "}", "1e308", "-1e308", "Expiration", "profiles", "null"};
}
