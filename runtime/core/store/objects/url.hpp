// ObjectUrl: the address of an object, or of all objects with a prefix, in an object store:
//
//   s3://bucket/key   oss://bucket/key   cos://bucket-appid/key   obs://bucket/key   gs://bucket/key
//   az://account/container/key
//
// A key is UTF-8 and is taken as it stands: nothing in it is decoded. A query at the end, "?endpoint=URL&region=NAME",
// names a server that is compatible with the scheme's, and the region; any other text after "?" belongs to the key.
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"

namespace rille::objects {

inline constexpr std::size_t key_bytes_max = 1024;  // of every store

struct ObjectUrl {
  std::string scheme;            // "s3", "oss", "cos", "obs", "gs" or "az"
  std::string account;           // of az; "" for the others
  std::string bucket;            // of az: the container
  std::string key;               // "": the bucket itself
  std::string endpoint, region;  // "": not told

  std::string root() const;  // "s3://bucket/", without endpoint and region
  std::string text() const;  // the address, for messages and the journal; parse(text()) gives the same ObjectUrl
};

bool is_object_url(std::string_view text);  // whether it begins with one of the schemes

// Error `invalid`: says what is wrong with the address, and how one is written.
Result<ObjectUrl> parse_object_url(std::string_view text);

// Error `invalid`: the key is empty, too long, or not UTF-8.
Result<> check_key(std::string_view key);

}  // namespace rille::objects
