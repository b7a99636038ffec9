#include "runtime/core/net/redact.hpp"

#include <catch2/catch.hpp>

using namespace rille::net;

TEST_CASE("URLs lose their secrets and keep what helps") {
  CHECK(redact_url("https://h.example/a/b?x=1") == "https://h.example/a/b?x=1");
  CHECK(redact_url("https://me:pass@h.example:8443/a") == "https://h.example:8443/a");
  CHECK(redact_url("https://me:p@ss@h/a") == "https://h/a");
  CHECK(redact_url("https://h/a?X-Amz-Signature=abc&list-type=2&X-Amz-Credential=AK%2F1&sig=x&token=") ==
        "https://h/a?X-Amz-Signature=***&list-type=2&X-Amz-Credential=***&sig=***&token=***");
  CHECK(redact_url("https://h?api_key=1#frag") == "https://h?api_key=***");
  CHECK(redact_url("https://h/#access_token=1") == "https://h/");
  CHECK(redact_url("no url with secret") == "(not a URL)");
  CHECK(redact_url("http://h/a\nb") == "http://h/a?b");
  CHECK(redact_url("https://h/a@b?c@d") == "https://h/a@b?c@d");
}

TEST_CASE("a signed address is shown without its query") {
  CHECK(shown_address("https://me:pass@h.example/a/b?x=1#y") == "https://h.example/a/b");
  CHECK(shown_address("https://h?code=1") == "https://h");
  CHECK(shown_address("https://h/a#b?c") == "https://h/a");
}

TEST_CASE("secret headers are known by name") {
  for (const char* name : {"Authorization", "proxy-authorization", "Cookie", "SET-COOKIE", "X-Api-Key",
                           "x-amz-security-token", "X-Auth-Token", "Ocp-Apim-Subscription-Key"})
    CHECK(is_secret_header(name));
  for (const char* name : {"Content-Type", "Range", "ETag", "Accept", "If-Match", "Host"})
    CHECK(!is_secret_header(name));
}
