// Tests each signer against values published by its vendor or in the vendor's SDK. Sources, with the full requests:
// AWS: awslabs/aws-c-auth's signing suite, boto's, and S3's documentation. Alibaba: its documentation, darabonba's and
// OSS's SDKs. Tencent and COS: their documentation and SDKs. Huawei: its SDK's tests and documentation.
#include <catch2/catch.hpp>

#include "runtime/core/base/id.hpp"
#include "runtime/core/net/sign/alibaba.hpp"
#include "runtime/core/net/sign/aws.hpp"
#include "runtime/core/net/sign/huawei.hpp"
#include "runtime/core/net/sign/jwt.hpp"
#include "runtime/core/net/sign/tencent.hpp"

using namespace rille::net;

namespace {

constexpr std::int64_t second = 1'000'000;

// The signature at the end of Authorization or of a URL: the text after "ignature=".
std::string signature_in(const std::string& text) {
  const std::size_t at = text.rfind("ignature=");
  return at == std::string::npos ? text : text.substr(at + 9);
}
std::string signature_in(const Parts& signed_parts) {
  const std::string* value = signed_parts.find_header("Authorization");
  return value ? signature_in(*value) : "";
}

Parts get(std::string host, std::string path = "/", Query query = {}, Headers headers = {}) {
  Parts parts;
  parts.host = std::move(host);
  parts.path = std::move(path);
  parts.query = std::move(query);
  parts.headers = std::move(headers);
  return parts;
}

}  // namespace

TEST_CASE("AWS: the signing suite", "[sign]") {
  struct Row {
    const char* name;
    Parts parts;
    const char* header;
    const char* query;
    AwsScope scope{"us-east-1", "service"};
    std::string token = "";
  };
  const std::string host = "example.amazonaws.com";
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::string token =
      "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRq"
      "TflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75Y"
      "U9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9K"
      "SYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
  AwsScope as_is{"us-east-1", "service"}, token_after = as_is;
  as_is.normalize_path = false;
  token_after.sign_token = false;
  Parts post = get(host);
  post.method = "POST";
  Parts form = post;
  form.headers = {{"Content-Type", "application/x-www-form-urlencoded"}, {"Content-Length", "13"}};
  form.body = "Param1=value1";
  Parts hashed = form;
  hashed.set_header("x-amz-content-sha256", rille::sha256_hex(form.body));
  const Row rows[] = {
      {"get-vanilla", get(host), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
       "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"},
      {"get-vanilla-query-order-key-case", get(host, "/", {{"Param2", "value2"}, {"Param1", "value1"}}),
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
       "86012e2c9ad4d77369f5d81c11f75158aae4f895a085212cc6d3f923d300bed5"},
      {"get-vanilla-query-order-encoded",
       get(host, "/", {{"Param-3", "Value3"}, {"Param", "Value2"}, {"\u1234", "Value1"}}),
       "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
       "c5f1848ceec943ac2ca68ee720460c23aaae30a2300586597ada94c4a65e4787"},
      {"get-unreserved", get(host, "/-._~0123456789" + letters),
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
       "95968482db1b9e0fadef6efc1bd24689f77c77d9ef56919c96a28cc92e0d6005"},
      {"get-utf8", get(host, "/\u1234"), "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
       "10eae3f14a260bd3911cc6d008d3c576d143b05b62f09782a7a4b37f52178e44"},
      {"get-space-normalized", get(host, "/example space/"),
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
       "7a1f416954786484c9824d93c1f26ef64acb9b1b6c9154d08c9f07d0e394abf6"},
      {"get-slashes-normalized", get(host, "//example//"),
       "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
       "c1834e8fb0307243711f0f907f6ab7311ed300d87f13792d7ee4da89ab93e082"},
      {"get-slashes-unnormalized", get(host, "//example//"),
       "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5",
       "822a5a9ba28072c5ab2bb4a6307d0c88276d40e49fec6b724c03fb4d4ba60fc2", as_is},
      {"get-relative-normalized", get(host, "/example/.."),
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
       "e93c787ed7f371d5c6b165c1b38ede9550f4dce4144713e844b25b7192d3865d"},
      {"get-header-value-multiline", get(host, "/", {}, {{"My-Header1", "value1\n  value2\n     value3"}}),
       "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd",
       "e6f5def831211aca02987a44b96826706278c7bc078112ae0263659c5b2f2d56"},
      {"get-header-value-trim", get(host, "/", {}, {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}}),
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
       "e7bb0fd515e125e1aec2ecc4c0c17484fb06f6846b927c35e46005dd3df3acd4"},
      {"get-header-key-duplicate",
       get(host, "/", {}, {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}}),
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
       "3349ee0b81b4b589da0ff28a395c3591e04de515651dd74f298fa992d1507a97"},
      {"get-vanilla-with-session-token",
       get(host),
       "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
       "7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c",
       {"us-east-1", "service"},
       "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"},
      {"post-vanilla", post, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
       "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b"},
      {"post-x-www-form-urlencoded", form, nullptr, "89a40deed0f26f9461242825a082d2222717248abc7ab41f552ad84a94ad46e9"},
      {"post-x-www-form-urlencoded", hashed, "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
       nullptr},
      {"post-sts-header-before",
       post,
       "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
       "46c2e3c63c1dbe7d39f8ada16fe7f001c1f56c5791441565323677f96308871c",
       {"us-east-1", "service"},
       token},
      {"post-sts-header-after", post, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
       "2ce6e6d2e0cf2f9d1b55fafec88cd20574c31dc2e7631979f71ba2310083e95b", token_after, token},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Credentials who{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", row.token};
    const std::int64_t time = 1440938160 * second;
    if (row.header) CHECK(signature_in(sign_aws(row.parts, who, row.scope, time)) == row.header);
    if (row.query) CHECK(signature_in(presign_aws(row.parts, who, row.scope, time, 3600)) == row.query);
  }
}

TEST_CASE("AWS: boto's suite and IAM's example", "[sign]") {
  const Credentials who{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
  const std::int64_t time = 1440938160 * second;
  Parts form = get("example.amazonaws.com", "/", {}, {{"Content-Type", "application/x-www-form-urlencoded"}});
  form.method = "POST";
  form.body = "Param1=value1";
  CHECK(signature_in(sign_aws(form, who, {"us-east-1", "service"}, time)) ==
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
  const Parts users = get("iam.amazonaws.com", "/", {{"Action", "ListUsers"}, {"Version", "2010-05-08"}},
                          {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}});
  const Parts done = sign_aws(users, who, {"us-east-1", "iam"}, time);
  CHECK(*done.find_header("Authorization") ==
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
  CHECK(done.url() == "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08");
}

TEST_CASE("S3: the examples of its documentation", "[sign]") {
  const Credentials who{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  const AwsScope scope{"us-east-1", "s3"};
  const std::int64_t time = 1369353600 * second;
  const std::string host = "examplebucket.s3.amazonaws.com";
  CHECK(signature_in(sign_aws(get(host, "/test.txt", {}, {{"Range", "bytes=0-9"}}), who, scope, time)) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  Parts put = get(host, "/test$file.text", {},
                  {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}});
  put.method = "PUT";
  put.body = "Welcome to Amazon S3.";
  const char* const signed_put = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
  CHECK(signature_in(sign_aws(put, who, scope, time)) == signed_put);
  put.path = encode_path("/test$file.text");
  CHECK(signature_in(sign_aws(put, who, scope, time)) == signed_put);
  CHECK(signature_in(sign_aws(get(host, "/", {{"lifecycle", std::nullopt}}), who, scope, time)) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(signature_in(sign_aws(get(host, "/", {{"max-keys", "2"}, {"prefix", "J"}}), who, scope, time)) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  CHECK(signature_in(presign_aws(get(host, "/test.txt"), who, scope, time, 86400)) ==
        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
  Parts pieces = get("s3.amazonaws.com", "/examplebucket/chunkObject.txt", {},
                     {{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                      {"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
                      {"Content-Encoding", "aws-chunked"},
                      {"x-amz-decoded-content-length", "66560"},
                      {"Content-Length", "66824"}});
  pieces.method = "PUT";
  std::string last = signature_in(sign_aws(pieces, who, scope, time));
  CHECK(last == "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9");
  last = aws_chunk_signature(who, scope, time, last, std::string(65536, 'a'));
  CHECK(last == "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
  last = aws_chunk_signature(who, scope, time, last, std::string(1024, 'a'));
  CHECK(last == "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
  CHECK(aws_chunk_signature(who, scope, time, last, "") ==
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9");
}

TEST_CASE("Alibaba: RPC and ACS3", "[sign]") {
  Parts regions = get("ecs.aliyuncs.com", "/", {{"Format", "XML"}});
  const Parts rpc =
      sign_alibaba_rpc(regions, {"testid", "testsecret", ""},
                       {"DescribeRegions", "2014-05-26", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"}, 1456231584 * second);
  CHECK(rpc.query.back().second == "OLeaidS1JvxuMvnyHOwuJ+uX5qY=");
  CHECK(alibaba_rpc_signature("GET", {{"query", "test"}, {"body", "test"}}, "secret") ==
        "XlUyV4sXjOuX5FnjUz9IF9tm5rU=");
  Parts run = get("ecs.cn-shanghai.aliyuncs.com", "/",
                  {{"RegionId", "cn-shanghai"}, {"ImageId", "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"}});
  run.method = "POST";
  const Parts acs =
      sign_alibaba(run, {"YourAccessKeyId", "YourAccessKeySecret", ""},
                   {"RunInstances", "2014-05-26", "3156853299f313e23d1673dc12e1703d"}, 1698315752 * second);
  CHECK(*acs.find_header("Authorization") ==
        "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,"
        "SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,"
        "Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0");
  CHECK(alibaba_authorization(get("", "/", {{"test", "ok"}, {"empty", ""}}), {"acesskey", "secret", ""},
                              {{"x-acs-test", "http,https"}},
                              "55e12e91650d2fec56ec74e1d3e4ddbfce2ef3a65890c2a19ecf88a307e76a23") ==
        "ACS3-HMAC-SHA256 Credential=acesskey,SignedHeaders=x-acs-test,"
        "Signature=d16b30a7699ae9e43875b13195b2f81bcc3ed10c14a9b5eb780e51619aa50be1");
  CHECK(percent_encode(" ~/*-+") == "%20~%2F%2A-%2B");
}

TEST_CASE("Alibaba: OSS", "[sign]") {
  Parts nelson = get("examplebucket.oss-cn-hangzhou.aliyuncs.com", "/nelson", {},
                     {{"Content-MD5", "eB5eJF1ptWaXm4bijSPyxw=="},
                      {"Content-Type", "text/html"},
                      {"Date", "Wed, 28 Dec 2022 10:27:41 GMT"},
                      {"x-oss-date", "Wed, 28 Dec 2022 10:27:41 GMT"},
                      {"x-oss-meta-author", "alice"},
                      {"x-oss-meta-magic", "abracadabra"}});
  nelson.method = "PUT";
  CHECK(*sign_oss_v1(nelson, {"ak", "sk", ""}, "examplebucket").find_header("Authorization") ==
        "OSS ak:kSHKmLxlyEAKtZPkJhG9bZb5k7M=");
  nelson.headers = {{"Content-MD5", "ODBGOERFMDMzQTczRUY3NUE3NzA5QzdFNUYzMDQxNEM="},
                    {"Content-Type", "text/html"},
                    {"Date", "Thu, 17 Nov 2005 18:49:58 GMT"},
                    {"x-oss-magic", "abracadabra"},
                    {"x-oss-meta-author", "foo@bar.com"}};
  const Credentials old{"44CF9590006BF252F707", "OtxrzxIsfpFjA7SwPzILwy8Bw21TLhquhboDYROV", ""};
  CHECK(*sign_oss_v1(nelson, old, "oss-example").find_header("Authorization") ==
        "OSS 44CF9590006BF252F707:26NBxoKdsyly4EDv6inkoDft/yA=");

  Parts put = get("bucket.oss-cn-hangzhou.aliyuncs.com", encode_path("/1234+-/123/1.txt"),
                  {{"param1", "value1"},
                   {"+param1", "value3"},
                   {"|param1", "value4"},
                   {"+param2", std::nullopt},
                   {"|param2", std::nullopt},
                   {"param2", std::nullopt}},
                  {{"x-oss-head1", "value"},
                   {"abc", "value"},
                   {"ZAbc", "value"},
                   {"XYZ", "value"},
                   {"content-type", "text/plain"}});
  put.method = "PUT";
  CHECK(canonical_query(put.query, "") == "%2Bparam1=value3&%2Bparam2&%7Cparam1=value4&%7Cparam2&param1=value1&param2");
  const OssScope scope{"cn-hangzhou", "bucket", {}}, more{"cn-hangzhou", "bucket", {"abc", "zabc"}};
  CHECK(*sign_oss(put, {"ak", "sk", ""}, scope, 1702743657 * second).find_header("Authorization") ==
        "OSS4-HMAC-SHA256 Credential=ak/20231216/cn-hangzhou/oss/aliyun_v4_request,"
        "Signature=e21d18daa82167720f9b1047ae7e7f1ce7cb77a31e8203a7d5f4624fa0284afe");
  CHECK(signature_in(sign_oss(put, {"ak", "sk", "token"}, scope, 1702784856 * second)) ==
        "b94a3f999cf85bcdc00d332fbd3734ba03e48382c36fa4d5af5df817395bd9ea");
  CHECK(*sign_oss(put, {"ak", "sk", ""}, more, 1702747512 * second).find_header("Authorization") ==
        "OSS4-HMAC-SHA256 Credential=ak/20231216/cn-hangzhou/oss/aliyun_v4_request,AdditionalHeaders=abc;zabc,"
        "Signature=4a4183c187c07c8947db7620deb0a6b38d9fbdd34187b6dbaccb316fa251212f");
}

TEST_CASE("Tencent: TC3", "[sign]") {
  const std::string stars = "Gu5t9xGARNpq86cd98joQYCN3*******", example = "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE";
  Parts parts = get("cvm.tencentcloudapi.com", "/", {}, {{"Content-Type", "application/json; charset=utf-8"}});
  parts.method = "POST";
  parts.body = R"({"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]})";
  CHECK(rille::sha256_hex(parts.body) == "35e9c5b0e3ae67532d3c9f17ead6c90222632e5b1ff7f6e89887f1398934f064");
  const TencentCall call{"cvm", "DescribeInstances", "2017-03-12", "ap-guangzhou"};
  TencentCall with_action = call;
  with_action.sign_action = true;
  const std::int64_t time = 1551113065 * second;
  CHECK(tencent_canonical_sha256(parts, false) == "5ffe6a04c0664d6b969fab9a13bdab201d63ee709638e2749d62a09ca18d7031");
  CHECK(signature_in(sign_tencent(parts, {"id", example, ""}, call, time)) ==
        "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168");
  CHECK(signature_in(sign_tencent(parts, {"id", stars, ""}, call, time)) ==
        "2230eefd229f582d8b1b891af7107b91597240707d778ab3738f756258d7652c");
  CHECK(signature_in(sign_tencent(parts, {"id", stars, ""}, with_action, time)) ==
        "be4f67d323c78ab9acb7395e43c0dbcf822a9cfac32fea2449a7bc7726b770a3");
  const Parts list = get("cvm.tencentcloudapi.com", "/", {{"Limit", "10"}, {"Offset", "0"}},
                         {{"Content-Type", "application/x-www-form-urlencoded"}});
  const Parts done = sign_tencent(list, {"AKID", example, ""}, call, 1539084154 * second);
  CHECK(*done.find_header("Authorization") ==
        "TC3-HMAC-SHA256 Credential=AKID/2018-10-09/cvm/tc3_request, SignedHeaders=content-type;host, "
        "Signature=5da7a33f6993f0614b047e5df4582db9e9bf4672ba50567dba16c6ccf174c474");
}

TEST_CASE("Tencent: COS", "[sign]") {
  const Credentials who{"AKIDQjz3ltompVjBni5LitkWHFlFpwkn9U5q", "BQYIM75p8x0iWVFSIgqEKwFprpRSVHlz", ""};
  Parts put = get("examplebucket-1250000000.cos.ap-beijing.myqcloud.com", encode_path("/exampleobject(腾讯云)"), {},
                  {{"Content-Length", "13"},
                   {"Content-MD5", "mQ/fVh815F3k6TAUm8m0eg=="},
                   {"Content-Type", "text/plain"},
                   {"Date", "Thu, 16 May 2019 06:45:51 GMT"},
                   {"x-cos-acl", "private"},
                   {"x-cos-grant-read", "uin=\"100000000011\""}});
  put.method = "PUT";
  CHECK(*sign_cos(put, who, 1557989151, 1557996351).find_header("Authorization") ==
        "q-sign-algorithm=sha1&q-ak=AKIDQjz3ltompVjBni5LitkWHFlFpwkn9U5q&q-sign-time=1557989151;1557996351"
        "&q-key-time=1557989151;1557996351"
        "&q-header-list=content-length;content-md5;content-type;date;host;x-cos-acl;x-cos-grant-read"
        "&q-url-param-list=&q-signature=3b8851a11a569213c17ba8fa7dcf2abec6935172");
  const Parts read =
      get(put.host, put.path,
          {{"response-content-type", "application/octet-stream"}, {"response-cache-control", "max-age=600"}},
          {{"Date", "Thu, 16 May 2019 06:55:53 GMT"}});
  CHECK(signature_in(sign_cos(read, who, 1557989753, 1557996953)) == "01681b8c9d798a678e43b685a9f1bba0f6c0e012");
}

TEST_CASE("Huawei", "[sign]") {
  const Credentials who{"AccessKey", "SecretKey", ""};
  const std::int64_t time = 1591583940 * second;
  const Parts read =
      get("service.endpoint.myhuaweicloud.com", "/resources", {{"size", "1"}}, {{"TEST_UNDERSCORE", "x"}});
  Parts post = read;
  post.method = "POST";
  post.body = R"({"name":"test","id":1})";
  CHECK(*sign_huawei(read, who, time).find_header("Authorization") ==
        "SDK-HMAC-SHA256 Access=AccessKey, SignedHeaders=host;x-sdk-date, "
        "Signature=cfb4171acec81de07d50e53d57eb77edd537414d66ddb1d7d780f128e12cd842");
  CHECK(signature_in(sign_huawei(post, who, time)) ==
        "436b1ac0a1ae03705934bb70ef2f2e09f7bfed2117d731a38235053199323a1f");
  CHECK(*sign_huawei(read, who, time, {"test-region-1", "demo"}).find_header("Authorization") ==
        "V11-HMAC-SHA256 Credential=AccessKey/20200608/test-region-1/demo, SignedHeaders=host;x-sdk-date, "
        "Signature=f7dfee056692e58dede80fc80cb89bbfabf45552dd7cd8d18a0a13484455b98e");
  CHECK(signature_in(sign_huawei(post, who, time, {"test-region-1", "demo"})) ==
        "8e2d91eaf9656ec5d6fab27812e2d898a35aaaa5e16ee0a0365c38527ccfb3cf");
  const Parts vpcs =
      get("service.region.example.com", "/v1/77b6a44cba5143ab91d13ab9a8ff44fd/vpcs",
          {{"limit", "2"}, {"marker", "13551d6b-755d-4757-b956-536f674975c0"}}, {{"Content-Type", "application/json"}});
  CHECK(signature_in(sign_huawei(vpcs, {"id", "MFyfvK41ba2giqM7Uio6PznpdUKGpownRZlmVmHc", ""}, 1573789015 * second)) ==
        "7be6668032f70418fcc22abc52071e57aff61b84a1d2381bb430d6870f4f6ebe");
  CHECK(canonical_query({{"multi", "1"},
                         {"multi", "2"},
                         {"multi", "3"},
                         {"limit", "1"},
                         {"path", "/tmp/123"},
                         {"enable", "true"},
                         {"test", "一 (&=?!#%.*)"}}) ==
        "enable=true&limit=1&multi=1&multi=2&multi=3&path=%2Ftmp%2F123&test=%E4%B8%80%20%28%26%3D%3F%21%23%25.%2A%29");
}

TEST_CASE("S3: an encoded slash inside of a name is no other slash", "[sign]") {  // the value is botocore's
  const Parts parts = get("b.example.com", "/a%2Fb/c%20d");
  CHECK(signature_in(sign_aws(parts, {"AK", "SK", ""}, {"us-east-1", "s3"}, 1795305600 * second)) ==
        "18713fc4c0fcd45fb7c01029b906041a63bda2311dea56b4a72c00f81a440e36");
}

// The values come from the vendors' SDKs; tests/contract/sdk compares thousands.
TEST_CASE("Spaces inside of headers and names that encoding would reorder are signed as the vendors do", "[sign]") {
  const Credentials who{"AK", "SK", ""};
  const std::int64_t time = 1795305600 * second;
  const Parts list =
      get("ecs.example.com", "/v1/a%2Fb", {{"k~", "1"}, {"k+", "2"}, {"k", "b+"}, {"k", "b~"}, {"k", ""}},
          {{"X-Note", " two  spaces "}});
  CHECK(signature_in(sign_huawei(list, who, time)) ==
        "ff121942b51e078a7b794b4a002c4b6ae7b7da29bac6cf758fbd1ebd78335897");
  Parts post = get("ecs.aliyuncs.com", "/", {}, {{"x-acs-note", " two  spaces "}, {"X-Acs-Note", "before"}});
  post.method = "POST";
  CHECK(signature_in(sign_alibaba(post, who, {"A", "2014-05-26", "n"}, time)) ==
        "f81517785a52dc11b462e8878508e7e5be9050c08441487ee5d50300ae501b3b");
  const Parts rpc = get("ecs.aliyuncs.com", "/", {{"k~", "1"}, {"k+", "2"}, {"Format", "JSON"}, {"SignatureType", ""}});
  CHECK(sign_alibaba_rpc(rpc, who, {"A", "2014-05-26", "n"}, time).query.back().second ==
        "R/e5HxpSz8MEgvKunNgtWlH6/ls=");
}

TEST_CASE("JWT: RFC 7515, appendix A.2", "[sign]") {
  const std::string key =
      "-----BEGIN PRIVATE KEY-----\n"
      "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCh+BYK4uPJtGXO\n"
      "jS1lYmM2K5J9vinh8CR3/BYlzJChNuOL2TSXxbbqY913EeZ8dCn5VrD7io8ImtxL\n"
      "aYk8wTM/U+3QGbh3hCUv7JFP5IV3aVlL6kKA0ywPVb9ilE8TA5a8bpvfbr3SvaNn\n"
      "juygxmj3AbONv/s4yDQs4v5tJ/reSlpIdJed1LnPmt7Ex1sFhSwsD174pcF1A5L5\n"
      "ROjtZMEQxrZHYJqkeDrrnGya11UxMFBji4NmXG9veoKjlnAqH2QbgtPr8jkiGUkf\n"
      "toaHLFcW9Qr4NY2ai50Xw0Byj3+H2JoY2PyrZ62EWQwuz3WTOTY8BwNNb2BvniHg\n"
      "VFbK5emhAgMBAAECggEAEq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyW\n"
      "PEAeP88vLNO97IjlA7/GQ5sLKMgvfTeXZx9SE+7YwVol2NXOoAJe46sui395IW/G\n"
      "O+pWJ1O0BkTGoVEn2bKVRUCgu+GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzj\n"
      "kn439X0M/V51gfpRLI9JYanrC4D4qAdGcopV/0ZHHzQlBjudU2QvXt4ehNYTCBr6\n"
      "XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl/x/jTj3ccPDVZFD9pIuhLhBOneufuBiB\n"
      "4cS98l2SR/RQyGWSeWjnczT0QU91p1DhOVRuOopznQKBgQDgHMQQ60imZV1URk0K\n"
      "pLttoLhyt3SmqdEf/kgHePDdtzEafpAu+cS191R2JiuoF2yzWXnwFDcqGigp5BNr\n"
      "0AHQfD8/Lk8l1Mk09jxxCfui5nYooNyac8YFjm3vItzVCVDnEd3BbVWG8qf6deqE\n"
      "lMGAg+C2V0L4oNXnP7LZcPAZRwKBgQC5A8R+CZW2MvRTLLHzwZkUXV866cff7tx6\n"
      "kqa0finGG0KgeqlaZPxgCZnFp7AeAcCMtiynVlJ7vMVgePsLq6XtON4tB5kP9jAP\n"
      "rq3rbAOal78eUH5OcED6eNuCV8ixEu1eWcPNCS/l1OW1EnXUEoEHKl54Xrrz2uNw\n"
      "kgMTP1FZ1wKBgAcCn1dwJKufzBWQxWQp1vsM5fggqPN1qGb5y0MAk3g7/Ls5bkUp\n"
      "5u9SN0Ai3Ya6hNnvWJMb7sXQX6U/zyO2M/hTip7tUeh7CXgwo59dkpN75gJLVds2\n"
      "9+DAncu3KXU4f2Fa+7bLNrur53k8KwPOq2bbuTG69QtV7Jr5MR0AHWKNAoGBAIf/\n"
      "evpitUf+4JYbLpvNXWcY052Mpz22aR84mY3nh3F2LF2mjMJDpTg7FmuyPcVw6EcG\n"
      "yoAe9fa65iNqCq+jdw6PVNGo2hxfjSiZ8IIzHdsPXI89//pMjZcQK9r+CCoRjaZj\n"
      "OYiIDktVWZzmevJuv6WywUqd57LE3Zar3dLSIkx1AoGAIYd7DHOhrWvxkwPQsRM2\n"
      "tOgrjbcrfvtQJipd+DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd/QJQ3\n"
      "ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp/gh6A56\n"
      "03k2+ZQwVK0JKSHuLFkuQ3U=\n"
      "-----END PRIVATE KEY-----\n";
  const auto made = sign_jwt("{\"alg\":\"RS256\"}",
                             "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}", key);
  REQUIRE(made);
  CHECK(*made ==
        "eyJhbGciOiJSUzI1NiJ9."
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-"
        "0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--"
        "f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqt"
        "FZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77"
        "Rw");
  const auto wrong = sign_jwt("{}", "{}", "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n");
  REQUIRE(!wrong);
  CHECK(wrong.error().kind == rille::ErrorKind::auth);
  CHECK(wrong.error().message.find("secret") == std::string::npos);
}

TEST_CASE("What is signed is what is sent", "[sign]") {
  Parts parts = get("h", encode_path("/a b/ü"), {{"key", "a+b c"}, {"alone", std::nullopt}}, {{"X", "1"}});
  CHECK(parts.url() == "https://h/a%20b/%C3%BC?key=a%2Bb%20c&alone");
  CHECK(percent_decode(parts.path) == "/a b/ü");
  CHECK(percent_decode("%zz%4") == "%zz%4");
  parts.set_header("x", "2");
  REQUIRE(parts.headers.size() == 1);
  HttpRequest request;
  request.retry.attempts = 7;
  parts.put_into(request);
  CHECK(request.url == parts.url());
  CHECK(request.headers == parts.headers);
  CHECK(request.retry.attempts == 7);
  CHECK(http_date(784111777 * second) == "Sun, 06 Nov 1994 08:49:37 GMT");
}
