// Tencent Cloud's signatures: TC3 for its products' APIs, and the signature of COS, its object store.
// https://www.tencentcloud.com/document/product/213/33224, https://www.tencentcloud.com/document/product/436/7778
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct TencentCall {
  // such as "cvm", "DescribeZones", "2017-03-12", "ap-guangzhou"; region may be ""
  std::string service, action, version, region;
  bool sign_action = false;  // include X-TC-Action in the signed headers
};

// Signs with TC3-HMAC-SHA256. The headers must contain Content-Type; a POST has its parameters in a JSON body.
Parts sign_tencent(Parts parts, const Credentials& who, const TencentCall& call, std::int64_t wall_us);
std::string tencent_canonical_sha256(const Parts& parts, bool sign_action);

// Signs for COS; the signature is valid from from_s to to_s, in Unix seconds.
Parts sign_cos(Parts parts, const Credentials& who, std::int64_t from_s, std::int64_t to_s);
// The same as a URL that anyone can use without credentials. The request must carry the headers of `parts`.
std::string presign_cos(Parts parts, const Credentials& who, std::int64_t from_s, std::int64_t to_s);

}  // namespace rille::net
