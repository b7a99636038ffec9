// Rille's signers as a filter, for signers.py: a request as a line of JSON in, that request signed as a line out.
// In: vendor, method, host, path, query and headers (lists of pairs; a value of null: a key that stands alone), body,
// id, secret, token, time_us, and what that vendor's signer wants beside. Out: url, headers, body. No request is sent.
#include <cstdio>
#include <iostream>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/net/sign/alibaba.hpp"
#include "runtime/core/net/sign/aws.hpp"
#include "runtime/core/net/sign/azure.hpp"
#include "runtime/core/net/sign/google.hpp"
#include "runtime/core/net/sign/huawei.hpp"
#include "runtime/core/net/sign/tencent.hpp"

using rille::Value;
using namespace rille::net;

namespace {

// Each pair of a list of them: both its texts, or nothing for a value of null.
template <class Take>
void each_pair(const Value& list, Take take) {
  for (const Value& pair : *list.as_array())
    take(*(*pair.as_array()).at(0).as_string(), (*pair.as_array()).at(1).as_string());
}

Parts read_parts(const Value& v) {
  Parts parts;
  parts.method = v.text("method");
  parts.scheme = "http";
  parts.host = v.text("host");
  parts.path = v.text("path", "/");
  parts.body = v.text("body");
  each_pair(v["query"], [&](const std::string& key, const std::string* value) {
    parts.query.emplace_back(key, value ? std::optional(*value) : std::nullopt);
  });
  each_pair(v["headers"],
            [&](const std::string& name, const std::string* value) { parts.headers.emplace_back(name, *value); });
  return parts;
}

std::string with_sas(const Value& v, Parts parts) {
  SasOf of;
  of.account = v.text("id");
  of.container = v.text("bucket");
  of.key = percent_decode(parts.path.substr(1));
  of.rights = v.text("rights");
  of.https_only = v.boolean("https_only");
  of.from_wall_us = v.integer("from_us");
  of.to_wall_us = v.integer("time_us");
  const std::string key = v.text("secret");
  const DelegationKey lent{v["lent"].text("oid"),
                           v["lent"].text("tid"),
                           v["lent"].text("start"),
                           v["lent"].text("expiry"),
                           v["lent"].text("service"),
                           v["lent"].text("version"),
                           key};
  const Query sas = (v.text("vendor") == "azure_lent_url" ? azure_sas(of, lent) : azure_sas(of, key)).value();
  parts.query.insert(parts.query.end(), sas.begin(), sas.end());
  return parts.url();
}

// Of stores, addresses that anyone may use have their signature in the URL, and no headers are added.
std::string presigned_url(const Value& v) {
  Parts parts = read_parts(v);
  const Credentials who{v.text("id"), v.text("secret"), v.text("token")};
  const std::string vendor = v.text("vendor");
  const std::int64_t time_us = v.integer("time_us"), expires_s = v.integer("expires_s");
  if (vendor == "obs_url") return presign_obs(std::move(parts), who, v.text("region"), time_us, expires_s);
  if (vendor == "aws_url") {
    const AwsScope scope{v.text("region"), "s3"};
    return presign_aws(std::move(parts), who, scope, time_us, expires_s);
  }
  if (vendor == "oss_url") {
    const OssScope scope{v.text("region"), v.text("bucket"), {}};
    return presign_oss(std::move(parts), who, scope, time_us, expires_s);
  }
  if (vendor == "cos_url") return presign_cos(std::move(parts), who, time_us / 1'000'000, expires_s);
  if (vendor.starts_with("azure")) return with_sas(v, std::move(parts));
  const GoogleUrl made = google_url(std::move(parts), who.id, time_us, expires_s);
  return made.parts.url() + "&X-Goog-Signature=" + rille::sha256_hex(made.text);  // the key is another test's matter
}

Parts sign(const Value& v) {
  Parts parts = read_parts(v);
  const Credentials who{v.text("id"), v.text("secret"), v.text("token")};
  const std::string vendor = v.text("vendor");
  const std::int64_t time_us = v.integer("time_us");
  if (vendor == "aws") {
    AwsScope scope{v.text("region"), v.text("service")};
    return sign_aws(std::move(parts), who, scope, time_us);
  }
  const AlibabaCall alibaba{v.text("action"), v.text("version"), v.text("nonce")};
  if (vendor == "alibaba") return sign_alibaba(std::move(parts), who, alibaba, time_us);
  if (vendor == "alibaba_rpc") return sign_alibaba_rpc(std::move(parts), who, alibaba, time_us);
  if (vendor == "tencent") {
    const TencentCall call{v.text("service"), v.text("action"), v.text("version"), v.text("region"),
                           v.boolean("sign_action")};
    return sign_tencent(std::move(parts), who, call, time_us);
  }
  if (vendor == "oss") {
    const OssScope oss{v.text("region"), v.text("bucket"), {}};
    return sign_oss(std::move(parts), who, oss, time_us);
  }
  if (vendor == "obs") return sign_obs(std::move(parts), who, v.text("region"), time_us);
  if (vendor == "cos") return sign_cos(std::move(parts), who, time_us / 1'000'000, v.integer("expires_s"));
  if (vendor == "azure")
    return sign_azure_blob(parts, who, time_us, static_cast<std::int64_t>(parts.body.size())).value();
  const HuaweiScope scope{v.text("region"), v.text("service")};
  return sign_huawei(std::move(parts), who, time_us, scope);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const rille::Result<Value> request = Value::from_json(line);
    if (!request) {
      std::cerr << request.error().message << "\n";
      return 2;
    }
    const bool in_url = request->text("vendor").ends_with("_url");
    const Parts done = in_url ? read_parts(*request) : sign(*request);
    Value::Array headers;
    for (const auto& [name, value] : done.headers) headers.push_back(Value::Array{name, value});
    std::cout << Value()
                     .set("url", in_url ? presigned_url(*request) : done.url())
                     .set("headers", std::move(headers))
                     .to_json()
              << std::endl;
  }
}
