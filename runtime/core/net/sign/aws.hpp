// Amazon's Signature Version 4, for AWS services and for S3 and compatible stores (MinIO, COS, OBS).
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct AwsScope {
  std::string region, service;
  // S3: the path is signed unchanged, and the body's hash is in x-amz-content-sha256.
  bool s3() const { return service == "s3"; }
  bool normalize_path = true;     // not for S3: "//" and ".." are resolved before signing
  bool unsigned_payload = false;  // S3 over TLS: the body is not hashed
  bool sign_token = true;         // false: X-Amz-Security-Token is added after signing, as a few services require
};

// Adds X-Amz-Date, the security token, the body's hash for S3, and Authorization.
Parts sign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us);
// A URL that needs no further credentials for `expires_s` (at most 604,800) seconds.
std::string presign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                        std::int64_t expires_s);

// The hash of the canonical request, for tests against published values.
std::string aws_canonical_sha256(const Parts& parts, const AwsScope& scope, const Canonical& headers,
                                 const std::string& payload);

// S3 bodies in signed chunks (x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD): each chunk's signature covers
// the previous one, and the first covers that of the headers.
std::string aws_chunk_signature(const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                                const std::string& previous, std::string_view chunk);

}  // namespace rille::net
