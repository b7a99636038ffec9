// Amazon's Signature Version 4, for EC2 and its sisters, and for S3 and what speaks like it (MinIO, COS, OBS).
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct AwsScope {
  std::string region, service;
  // S3: a path is signed as it is, and the body's hash stands in x-amz-content-sha256.
  bool s3() const { return service == "s3"; }
  bool normalize_path = true;     // of others: "//" and ".." are resolved before signing
  bool unsigned_payload = false;  // S3 over TLS: the body is not hashed
  bool sign_token = true;         // false: X-Amz-Security-Token is added after signing, as a few services want it
};

// The request with X-Amz-Date, the token, the hash where there is one, and Authorization.
Parts sign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us);
// A URL that anybody may use for `expires_s` (at most 604,800) seconds.
std::string presign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                        std::int64_t expires_s);

// What is hashed, hashed: for tests against published values.
std::string aws_canonical_sha256(const Parts& parts, const AwsScope& scope, const Canonical& headers,
                                 const std::string& payload);

// S3's bodies in signed pieces: each piece's signature covers the one before, and the first that of the head, whose
// x-amz-content-sha256 says STREAMING-AWS4-HMAC-SHA256-PAYLOAD.
std::string aws_chunk_signature(const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                                const std::string& previous, std::string_view chunk);

}  // namespace rille::net
