// Amazon's Signature Version 4, for AWS services and for S3 and compatible stores (MinIO, COS, OBS).
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct AwsScope {
  std::string region, service;
  // True for S3, where the path is signed unchanged and the body's hash is in x-amz-content-sha256.
  bool s3() const { return service == "s3"; }
  bool normalize_path = true;     // resolve "//" and ".." before signing; without effect for S3
  bool unsigned_payload = false;  // for S3 over TLS: sign without a hash of the body
  bool sign_token = true;         // false: add X-Amz-Security-Token after signing, as a few services require
};

// Adds the headers X-Amz-Date, X-Amz-Security-Token, x-amz-content-sha256 (S3 only) and Authorization.
Parts sign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us);
// A URL that anyone can use without credentials for `expires_s` seconds, at most 604,800.
std::string presign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                        std::int64_t expires_s);

// The hash of the canonical request, for tests against published values.
std::string aws_canonical_sha256(const Parts& parts, const AwsScope& scope, const Canonical& headers,
                                 const std::string& payload);

// The signature of one chunk of an S3 body sent in signed chunks (x-amz-content-sha256:
// STREAMING-AWS4-HMAC-SHA256-PAYLOAD). `previous`: the signature of the previous chunk; for the first chunk, the
// signature of the headers.
std::string aws_chunk_signature(const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                                const std::string& previous, std::string_view chunk);

}  // namespace rille::net
