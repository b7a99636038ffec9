#include "runtime/core/net/credentials/tencent/service.hpp"

#include "runtime/core/net/sign/tencent.hpp"

namespace rille::net::tencent {

namespace {

constexpr Meaning common_meanings[] = {
    {"RequestLimitExceeded*", Trouble::throttle},
    {"InternalError*", Trouble::transient},
    {"InternalServerError*", Trouble::transient},
    {"ResourceUnavailable*", Trouble::transient},
    {"AuthFailure.SignatureExpire", Trouble::clock, "set this machine's clock"},
    {"AuthFailure.TokenFailure", Trouble::expired, "get new temporary keys"},
    {"AuthFailure.SecretIdNotFound", Trouble::auth, "there is no such key: was it deleted?"},
    {"AuthFailure.SignatureFailure", Trouble::auth, "the secret key does not belong to the id"},
    {"AuthFailure*", Trouble::auth},
    {"UnauthorizedOperation*", Trouble::auth,
     "does the role exist, and does it trust the caller? docs/manual/providers/tencent.md"},
    // Errors have HTTP status 200, so an unlisted code leaves open whether the call had an effect.
    {"Invalid*", Trouble::invalid},
    {"MissingParameter*", Trouble::invalid},
    {"UnknownParameter*", Trouble::invalid},
    {"Unsupported*", Trouble::invalid},
    {"ResourceNotFound*", Trouble::invalid},
    {"OperationDenied*", Trouble::invalid},
};

// Reads an answer; errors have HTTP status 200 too. An answer without a RequestId does not come from the service.
Answer read_answer(const HttpResponse& response) {
  Answer out;
  Result<Value> value = Value::from_json(response.body);
  if (value) out.value = (*value)["Response"];
  out.request_id = out.value.text("RequestId");
  out.code = out.value["Error"].text("Code");
  out.message = out.value["Error"].text("Message");
  out.foreign = out.request_id.empty() || (out.code.empty() && !response.ok());
  return out;
}

}  // namespace

ApiOptions api_options(std::string service, std::string version, std::string region) {
  ApiOptions out;
  out.provider = "tencent";
  out.common_meanings = common_meanings;
  out.read = read_answer;
  out.sign = [service, version, region](Parts parts, const Credentials& who, std::int64_t us) {
    TencentCall call;
    call.service = service;
    call.action = *parts.find_header("X-TC-Action");
    call.version = version;
    call.region = region;
    return sign_tencent(std::move(parts), who, call, us);
  };
  return out;
}

Parts parts_for(const std::string& url, const std::string& action, std::string body) {
  Parts parts;
  parts.method = "POST";
  parts.scheme = url.substr(0, url.find("://"));
  parts.host = url.substr(url.find("://") + 3);
  parts.headers = {{"Content-Type", "application/json; charset=utf-8"}, {"X-TC-Action", action}};
  parts.body = std::move(body);
  return parts;
}

}  // namespace rille::net::tencent
