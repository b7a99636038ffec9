#include "runtime/core/net/credentials/aws/service.hpp"

#include "runtime/core/net/sign/aws.hpp"

namespace rille::net::aws {

namespace {

constexpr Meaning common_meanings[] = {
    {"RequestLimitExceeded", Trouble::throttle},
    {"Throttling*", Trouble::throttle},
    {"ThrottledException", Trouble::throttle},
    {"RequestThrottled*", Trouble::throttle},
    {"TooManyRequestsException", Trouble::throttle},
    {"SlowDown", Trouble::throttle},
    {"BandwidthLimitExceeded", Trouble::throttle},
    {"LimitExceededException", Trouble::throttle},
    {"PriorRequestNotComplete", Trouble::throttle},
    {"RequestTimeout*", Trouble::transient},
    {"InternalError*", Trouble::transient},
    {"InternalFailure*", Trouble::transient},
    {"InternalServerError*", Trouble::transient},
    {"Unavailable", Trouble::transient},
    {"ServiceUnavailable*", Trouble::transient},
    {"RequestExpired", Trouble::expired, "sign in again: aws sso login, or new keys"},
    {"RequestTimeTooSkewed", Trouble::clock, "set this machine's clock"},
    {"ExpiredToken*", Trouble::expired, "sign in again: aws sso login, or new keys"},
    {"AuthFailure", Trouble::auth, "Amazon rejects these keys: `aws sts get-caller-identity` shows the account"},
    {"SignatureDoesNotMatch", Trouble::auth, "the secret key does not belong to the key id"},
    {"InvalidClientTokenId", Trouble::auth, "this key does not exist (any more): use a key that exists"},
    {"Blocked", Trouble::auth},
    {"AccessDenied*", Trouble::auth, "does the role exist, and does it trust the caller? docs/manual/providers/aws.md"},
    {"InvalidIdentityToken", Trouble::auth,
     "Amazon rejects the token: is its issuer an identity provider of the account?"},
    {"IDPRejectedClaim", Trouble::auth, "the issuer has revoked the token, or it has expired"},
    {"IDPCommunicationError", Trouble::transient},
    {"UnrecognizedClientException", Trouble::auth, "this key does not exist (any more): use a key that exists"},
    {"InvalidSignatureException", Trouble::auth, "the secret key does not belong to the key id"},
};

// Reads an XML answer. The root element of a success is named after the action: <ActionResponse>.
Answer read_xml_answer(const HttpResponse& response) {
  constexpr std::string_view root_ends = "Response";
  Answer out;
  const Result<Value> value = read_xml(response.body);
  const bool read = value && value->as_object() && !value->as_object()->empty();
  const std::string root = read ? value->as_object()->begin()->first : "";
  out.foreign = !root.ends_with(root_ends);
  if (out.foreign) return out;
  out.value = value->as_object()->begin()->second;
  if (response.ok()) {
    out.of = root.substr(0, root.size() - root_ends.size());
    return out;
  }
  const bool wrapped = !out.value["Errors"].is_null();  // EC2 sends a list of errors; STS and IAM send one error
  const Value& error = wrapped ? out.value["Errors"]["Error"] : out.value["Error"];
  out.code = error.text("Code");
  out.message = error.text("Message");
  out.request_id = out.value.text("RequestID", out.value.text("RequestId"));
  out.foreign = out.code.empty();
  return out;
}

Answer read_json_answer(const HttpResponse& response) {
  Answer out;
  Result<Value> value = Value::from_json(response.body);
  if (value) out.value = std::move(*value);
  const std::string type = out.value.text("__type");
  out.foreign = !out.value.as_object() || (!response.ok() && type.empty());
  if (response.ok() || out.foreign) return out;
  out.code = type.substr(type.find('#') == std::string::npos ? 0 : type.find('#') + 1);
  out.message = out.value.text("message", out.value.text("Message"));
  return out;
}

}  // namespace

ApiOptions api_options(const std::string& region, const char* service, bool json) {
  ApiOptions out;
  out.provider = "aws";
  out.common_meanings = common_meanings;
  out.read = json ? read_json_answer : read_xml_answer;
  out.sign = [region, name = std::string(service)](Parts parts, const Credentials& who, std::int64_t us) {
    AwsScope scope;
    scope.region = region;
    scope.service = name;
    return sign_aws(std::move(parts), who, scope, us);
  };
  return out;
}

Parts parts_for(const std::string& url) {
  Parts parts;
  parts.method = "POST";
  parts.scheme = url.substr(0, url.find("://"));
  parts.host = url.substr(url.find("://") + 3);
  if (const std::size_t slash = parts.host.find('/'); slash != std::string::npos) {
    parts.path = parts.host.substr(slash);
    parts.host.resize(slash);
  }
  return parts;
}

std::string domain_of(const std::string& region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

}  // namespace rille::net::aws
