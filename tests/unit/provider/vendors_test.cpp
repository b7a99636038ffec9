// What a provider's documents limit, without its fake.
#include <catch2/catch.hpp>

#include "runtime/workflow/provider/aws/iam.hpp"
#include "runtime/workflow/provider/huawei/ecs.hpp"

using namespace rille;
using namespace rille::provider;

TEST_CASE("huawei: in European regions machines and accounts have different domains") {
  CHECK(huawei::address_of("ecs", "eu-west-101") == "https://ecs.eu-west-101.myhuaweicloud.com");
  CHECK(huawei::address_of("evs", "eu-west-101") == "https://evs.eu-west-101.myhuaweicloud.com");
  CHECK(huawei::address_of("iam", "eu-west-101") == "https://iam.eu-west-101.myhuaweicloud.eu");
  CHECK(huawei::address_of("bss", "eu-west-101") == "https://bss.myhuaweicloud.eu");
  CHECK(huawei::address_of("iam", "cn-north-4") == "https://iam.cn-north-4.myhuaweicloud.com");
}

TEST_CASE("huawei: a lease's tag fits the value of a tag, is found again, and old ones are read") {
  const std::string tag = "rille-0123456789ab-l-fedcba987654-g1-x1900000000";
  REQUIRE(tag.size() == 48);
  CHECK(huawei::short_tag(tag) == "0123456789ab-l-fedcba987654.1.1900000000");
  CHECK(huawei::full_tag(huawei::short_tag(tag)) == tag);
  CHECK(huawei::full_tag(tag) == tag);  // as written before
  const std::string later = "rille-0123456789ab-l-fedcba987654-g9999-x9999999999";
  CHECK(huawei::short_tag(later).size() == huawei::tag_value_max);
  CHECK(huawei::full_tag(huawei::short_tag(later)) == later);
  for (const char* other : {"", "x", "my-g1-x2", "rille-", "rille-g1-x2", ".", "..", "a.b"}) {
    INFO(other);
    CHECK(huawei::short_tag(other) == other);
  }
  for (const char* other : {"", "x", ".", "a.b"}) CHECK(huawei::full_tag(other) == other);
}

TEST_CASE("aws: the policy names no partition, and so holds in China and GovCloud, too") {
  CHECK(aws::policy().find("arn:aws:") == std::string::npos);
  CHECK(aws::policy().find("arn:*:iam::*:user/") != std::string::npos);
}
