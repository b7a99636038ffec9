// Google Cloud Storage's signed URLs, version 4 (GOOG4-RSA-SHA256), which the key of a service account signs.
// https://docs.cloud.google.com/storage/docs/authentication/signatures
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

// A URL before its signature, and the text to sign with RSASSA-PKCS1-v1_5 and SHA-256. With the signature's bytes, the
// URL is `parts.url() + "&X-Goog-Signature=" + hex(signature)`. The request must carry the headers of `parts`.
struct GoogleUrl {
  Parts parts;
  std::string text;
};
// `account`: the e-mail of the service account. expires_s: at most 604,800.
GoogleUrl google_url(Parts parts, const std::string& account, std::int64_t wall_us, std::int64_t expires_s);

}  // namespace rille::net
