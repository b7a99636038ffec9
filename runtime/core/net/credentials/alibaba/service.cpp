#include "runtime/core/net/credentials/alibaba/service.hpp"

#include "runtime/core/base/id.hpp"
#include "runtime/core/net/sign/alibaba.hpp"

namespace rille::net::alibaba {

namespace {

constexpr const char* role_hint = "does the role exist, and does it trust the caller? docs/manual/providers/alibaba.md";

constexpr Meaning common_meanings[] = {
    {"Throttling*", Trouble::throttle},
    {"ServiceUnavailable*", Trouble::transient},
    {"InternalError*", Trouble::transient},
    {"InvalidTimeStamp.Expired", Trouble::clock, "set this machine's clock"},
    {"InvalidSecurityToken.Expired", Trouble::expired, "get new temporary keys"},
    {"InvalidAccessKeyId.NotFound", Trouble::auth, "there is no such key: was it deleted?"},
    {"SignatureDoesNotMatch", Trouble::auth, "the secret does not belong to the key id"},
    {"SignatureNonceUsed", Trouble::transient},
    {"Forbidden*", Trouble::auth, role_hint},
    {"AuthenticationFail.OIDCToken.Expired", Trouble::expired, "the token's file is no longer renewed"},
    {"NoPermission", Trouble::auth, role_hint},
};

// An answer without a RequestId, or an error without a Code, does not come from the service.
Answer read_answer(const HttpResponse& response) {
  Answer out;
  Result<Value> value = Value::from_json(response.body);
  if (value) out.value = std::move(*value);
  out.foreign = out.value.text(response.ok() ? "RequestId" : "Code").empty();
  if (response.ok()) return out;
  out.code = out.value.text("Code");
  out.message = out.value.text("Message");
  // The service's message repeats the string to sign, with every parameter, so replace it.
  if (out.code == "SignatureDoesNotMatch") out.message = "the signature does not match";
  out.request_id = out.value.text("RequestId");
  return out;
}

}  // namespace

ApiOptions api_options(std::string api_version) {
  ApiOptions out;
  out.provider = "alibaba";
  out.common_meanings = common_meanings;
  out.read = read_answer;
  out.sign = [api_version = std::move(api_version)](Parts parts, const Credentials& who, std::int64_t us) {
    AlibabaCall call;
    call.action = *parts.find_header("x-acs-action");
    call.version = api_version;
    call.nonce = random_hex(16);
    return sign_alibaba(std::move(parts), who, call, us);
  };
  return out;
}

Parts parts_for(const std::string& url, const std::string& action) {
  Parts parts;
  parts.method = "POST";
  parts.scheme = url.substr(0, url.find("://"));
  parts.host = url.substr(url.find("://") + 3);
  parts.headers = {{"x-acs-action", action}};
  return parts;
}

}  // namespace rille::net::alibaba
