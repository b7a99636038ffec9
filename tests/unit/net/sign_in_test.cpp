// Sign-ins of people and programs: what the files and answers say. The whole of it is in contract.keys.*.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "runtime/core/net/credentials/aws/profiles.hpp"
#include "runtime/core/net/credentials/aws/sso.hpp"
#include "runtime/core/net/credentials/azure/keys.hpp"
#include "runtime/core/net/credentials/firmware.hpp"
#include "runtime/core/net/credentials/gcp/executable.hpp"
#include "runtime/core/net/credentials/key_program.hpp"
#include "runtime/core/net/sign/certificate.hpp"
#include "runtime/core/net/sign/jwt.hpp"

using namespace rille;
using namespace rille::net;

namespace {

constexpr std::int64_t second_us = 1'000'000, now_us = 1'900'000'000 * second_us;  // 2030-03-17T17:46:40Z

Value json_of(const char* text) { return Value::from_json(text).value(); }

constexpr const char* config = R"([profile work]
sso_session = corp
sso_account_id = 1
sso_role_name = r
[profile older]
sso_start_url = https://s
sso_region = eu-west-1
sso_account_id = 2
sso_role_name = q
[profile keys]
sso_session = corp
[sso-session corp]
sso_region = us-east-1
sso_start_url = https://c
)";

struct Folder {
  std::string path = std::filesystem::temp_directory_path() / ("rille-sign-in-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) { std::ofstream(path + "/" + name) << text; }
};

}  // namespace

TEST_CASE("AWS profiles that sign in by SSO: with a session, without one, and not at all") {
  const net::Ini all = net::parse_ini(config);
  const auto work = aws::sso_of(all, "work").value();
  REQUIRE(work);
  CHECK(work->session + work->start_url + work->region + work->account + work->role == "corphttps://cus-east-11r");
  const auto older = aws::sso_of(all, "older").value();
  REQUIRE(older);
  CHECK(older->session + older->start_url + older->region + older->account + older->role == "https://seu-west-12q");
  CHECK_FALSE(aws::sso_of(all, "keys").value());  // a session alone is for other services than EC2
  CHECK_FALSE(aws::sso_of(all, "nobody").value());

  const std::string text = config;
  const auto wrong = aws::sso_of(net::parse_ini(text + "[profile work]\nsso_region = eu-west-1\n"), "work");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().kind == ErrorKind::config);
  CHECK(wrong.error().message ==
        "the AWS profile 'work' and its sso_session 'corp' have different values of sso_region");
  const auto half = aws::sso_of(net::parse_ini("[default]\nsso_role_name = r\nsso_region = x\n"), "default");
  REQUIRE_FALSE(half);
  CHECK(half.error().message == "the AWS profile 'default' uses SSO, but lacks sso_account_id, sso_start_url");
}

TEST_CASE("what aws sso login leaves: two kinds of times, and what renews it") {
  const auto login = aws::read_sso_login(json_of(R"({"accessToken": "t", "expiresAt": "2030-01-01T00:00:00Z",
    "refreshToken": "r", "clientId": "c", "clientSecret": "s", "registrationExpiresAt": "2030-06-01T00:00:00Z"})"));
  REQUIRE(login);
  CHECK(login->ends_wall_us == 1'893'456'000 * second_us);
  CHECK(login->renewable(now_us));
  CHECK_FALSE(login->renewable(now_us + 365LL * 86'400 * second_us));  // the registration is over, too
  const auto older = aws::read_sso_login(json_of(R"({"accessToken": "t", "expiresAt": "2030-01-01T00:00:00UTC"})"));
  REQUIRE(older);
  CHECK(older->ends_wall_us == login->ends_wall_us);
  CHECK_FALSE(older->renewable(0));
  for (const char* bad : {"{}", "[]", R"({"accessToken": "t"})", R"({"accessToken": "t", "expiresAt": "soon"})",
                          R"({"accessToken": 1, "expiresAt": "2030-01-01T00:00:00Z"})"})
    CHECK_FALSE(aws::read_sso_login(json_of(bad)));
}

TEST_CASE("what a credential_process prints: version 1, and an end that is ahead") {
  const Value keys = json_of(R"({"Version": 1, "AccessKeyId": "i", "SecretAccessKey": "s", "SessionToken": "t",
    "Expiration": "2030-03-17T18:46:40Z"})");
  const auto found = aws::read_process_keys(keys, "work", now_us);
  REQUIRE(found);
  CHECK(found->keys.id + found->keys.secret + found->keys.token == "ist");
  CHECK(found->expires_wall_us == now_us + 3'600 * second_us);  // the chain renews it before (keys_test.cpp)
  CHECK(found->from == "the AWS profile 'work'");
  CHECK_FALSE(aws::read_process_keys(keys, "work", now_us + 3'600 * second_us));
  CHECK_FALSE(aws::read_process_keys(Value(), "work", now_us));
  for (const char* bad : {"{}", R"({"Version": 1})", R"({"AccessKeyId": "i", "SecretAccessKey": "s"})"})
    CHECK_FALSE(aws::read_process_keys(json_of(bad), "work", now_us));
}

TEST_CASE("programs that print keys: errors show neither their output nor messages that may contain keys") {
  const auto loop = Loop::create().value();
  const auto ask = [&loop](std::string script, std::int64_t timeout_ms = 60'000, bool known = false) {
    net::KeyProgram program;
    program.argv = {"sh", "-c", std::move(script)};
    program.env = {{"WORD", "hello"}};
    program.what = "the program";
    program.timeout_ms = timeout_ms;
    program.known = known;
    return run_blocking(*loop, net::ask_program(*loop, std::move(program), {}));
  };
  CHECK(ask("echo '{\"a\": \"'$WORD'\"}'; echo chatter >&2").value().text("a") == "hello");
  CHECK(ask("true").value().is_null());
  const auto failed = ask("echo secret; printf 'one\\nERROR: no ticket\\nrun: kinit\\n' >&2; exit 4", 60'000, true);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().kind == ErrorKind::auth);
  CHECK(failed.error().message == "the program ended with exit code 4: ERROR: no ticket");
  for (const char* script : {"echo secret; echo >&2; exit 4", "echo boom aws_secret_access_key=secret >&2; exit 4"}) {
    const auto silent = ask(script);
    REQUIRE_FALSE(silent);
    CHECK(silent.error().message == "the program ended with exit code 4");
    CHECK(silent.error().hint.starts_with("run it by hand"));
    CHECK(silent.error().hint.find("secret") == std::string::npos);
  }
  const auto broken = ask("echo '{secret'; echo secret >&2");
  REQUIRE_FALSE(broken);
  CHECK(broken.error().summary().find("secret") == std::string::npos);
  const auto slow = ask("exec sleep 1000", 20);
  REQUIRE_FALSE(slow);
  CHECK(slow.error().kind == ErrorKind::timeout);
  CHECK(slow.error().message == "the program took longer than 20ms");
  net::KeyProgram none;
  none.argv = {"/nowhere/at-all"};
  none.what = "the program";
  const auto absent = run_blocking(*loop, net::ask_program(*loop, std::move(none), {}));
  REQUIRE_FALSE(absent);
  CHECK(absent.error().message.starts_with("the program: "));
}

TEST_CASE("an error shows one line of a program's messages") {
  CHECK(net::telling_line("") == "");
  CHECK(net::telling_line(" \n\t\r\n") == "");
  CHECK(net::telling_line("first\n  last\x1b[0m \n\n") == "last [0m");
  CHECK(net::telling_line("error: a\nError: b\nmore\n") == "Error: b");
  const std::string long_one = net::telling_line(std::string(399, 'x') + "\xc3\xa9" + std::string(100, 'y'));
  CHECK(long_one == std::string(399, 'x') + "..");
}

TEST_CASE("what a program of Google's external accounts prints") {
  const auto ask = [](const char* text) { return gcp::token_of_program(json_of(text), now_us, "it"); };
  constexpr const char* jwt = R"({"version": 1, "success": true, "expiration_time": 1900000001, "id_token": "t",
    "token_type": "urn:ietf:params:oauth:token-type:jwt"})";
  CHECK(ask(jwt).value() == "t");
  CHECK(ask(R"({"version": 1, "success": true, "saml_response": "s",
    "token_type": "urn:ietf:params:oauth:token-type:saml2"})")
            .value() == "s");
  CHECK_FALSE(gcp::token_of_program(json_of(jwt), now_us + 2 * second_us, "it"));
  const auto no = ask(R"({"version": 1, "success": false, "code": "401", "message": "closed\nERROR: really"})");
  REQUIRE_FALSE(no);
  CHECK(no.error().message == "it says: 401 ERROR: really");
  for (const char* bad : {"{}", "[]", "null", R"({"version": 2, "success": true})", R"({"version": 1})",
                          R"({"version": 1, "success": true, "token_type": "x", "id_token": "t"})",
                          R"({"version": 1, "success": true, "token_type": "urn:ietf:params:oauth:token-type:saml2",
                              "id_token": "t"})"})
    CHECK_FALSE(ask(bad));
}

TEST_CASE("what az prints: its token, and when that ends, also of older versions") {
  const auto newer = azure::read_az_token(json_of(R"({"accessToken": "t", "expires_on": 1900000000,
    "expiresOn": "1999-01-01 00:00:00.000000"})"));
  REQUIRE(newer);
  CHECK(newer->expires_wall_us == now_us);
  const auto older =
      azure::read_az_token(json_of(R"({"accessToken": "t", "expiresOn": "2030-03-17 17:46:40.123456"})"));
  REQUIRE(older);
  CHECK(std::abs(older->expires_wall_us - now_us) <= 14LL * 3'600 * second_us);  // this machine's time zone
  for (const char* bad : {"{}", R"({"accessToken": "t"})", R"({"accessToken": "t", "expiresOn": "soon"})",
                          R"({"expires_on": 1900000000})"})
    CHECK_FALSE(azure::read_az_token(json_of(bad)));
}

namespace {

struct Made {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  X509* certificate = X509_new();
  Made() {
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "20300317174640Z");
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
  }
  ~Made() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

template <class Write>
std::string written(Write write) {
  BIO* memory = BIO_new(BIO_s_mem());
  REQUIRE(write(memory) == 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  std::string out(bytes, static_cast<std::size_t>(size));
  BIO_free(memory);
  return out;
}

}  // namespace

TEST_CASE("a client's certificate: PEM and PKCS #12, with and without a password, its own before the chain") {
  const Made mine, other;
  const std::string own = written([&](BIO* b) { return PEM_write_bio_X509(b, mine.certificate); });
  const std::string theirs = written([&](BIO* b) { return PEM_write_bio_X509(b, other.certificate); });
  const std::string open =
      written([&](BIO* b) { return PEM_write_bio_PrivateKey(b, mine.key, nullptr, nullptr, 0, nullptr, nullptr); });
  const std::string closed = written([&](BIO* b) {
    return PEM_write_bio_PKCS8PrivateKey(b, mine.key, EVP_aes_256_cbc(), "word", 4, nullptr, nullptr);
  });
  const auto pkcs12 = [&](const char* word) {
    PKCS12* store = PKCS12_create(word, "me", mine.key, mine.certificate, nullptr, 0, 0, 0, 0, 0);
    const std::string out = written([&](BIO* b) { return i2d_PKCS12_bio(b, store); });
    PKCS12_free(store);
    return out;
  };
  for (const auto& [bytes, word] : {std::pair(theirs + own + open, ""), std::pair(closed + own, "word"),
                                    std::pair(pkcs12("word"), "word"), std::pair(pkcs12(""), "")}) {
    const auto read = net::read_certificate(bytes, word);
    REQUIRE(read);
    CHECK(read->key_pem == open);
    CHECK(read->ends_wall_us == now_us);
    const auto alone = net::read_certificate(own + open, "");
    CHECK(read->thumbprint() == alone->thumbprint());
    CHECK(read->thumbprint().size() == 27);
    CHECK(read->chain.front() == alone->chain.front());
    CHECK(net::sign_jwt("{}", "{}", read->key_pem));
  }
  CHECK(net::read_certificate(theirs + own + open, "")->chain.size() == 2);
  for (const auto& [bytes, word] :
       {std::pair(own, ""), std::pair(theirs + open, ""), std::pair(closed + own, ""), std::pair(closed + own, "wrong"),
        std::pair(pkcs12("word"), "wrong"), std::pair(std::string(), ""), std::pair(std::string("-----BEGIN"), ""),
        std::pair(std::string("\x30\x82"), "")}) {
    const auto read = net::read_certificate(bytes, word);
    REQUIRE_FALSE(read);
    CHECK(read.error().kind == ErrorKind::auth);
    CHECK(read.error().summary().find("wrong") == std::string::npos);
  }
}

TEST_CASE("a metadata service is waited for where the firmware names its cloud, or says nothing") {
  Folder dmi;
  CHECK(net::patience_ms({}, dmi.path) == 2'000);
  CHECK(net::patience_ms({"alibaba"}, dmi.path) == 1'000);
  dmi.write("sys_vendor", "LENOVO\n");
  CHECK(net::patience_ms({"alibaba"}, dmi.path) == 300);
  CHECK(net::patience_ms({}, dmi.path) == 2'000);
  dmi.write("product_name", "Alibaba Cloud ECS\n");
  CHECK(net::patience_ms({"tencent", "alibaba"}, dmi.path) == 2'000);
  CHECK(net::patience_ms({"tencent"}, dmi.path) == 300);
  dmi.write("chassis_asset_tag", "HUAWEICLOUD\n");
  CHECK(net::patience_ms({"huawei", "openstack"}, dmi.path) == 2'000);
}

TEST_CASE("AWS's region: the variables before the profile's") {
  Folder folder;
  folder.write("config",
               "[default]\nregion = eu-west-1\n[profile other]\noutput = json\n"
               "[profile \"my lab\"]\nRegion = eu-north-1\n");
  const std::string config_file = folder.path + "/config", none = folder.path + "/none";
  const std::map<std::string, std::string> ours{{"AWS_CONFIG_FILE", config_file},
                                                {"AWS_SHARED_CREDENTIALS_FILE", none},
                                                {"AWS_REGION", ""},
                                                {"AWS_DEFAULT_REGION", ""},
                                                {"AWS_PROFILE", ""},
                                                {"AWS_DEFAULT_PROFILE", ""}};
  std::map<std::string, std::optional<std::string>> before;
  for (const auto& [name, value] : ours) {
    const char* old = getenv(name.c_str());
    before[name] = old ? std::optional<std::string>(old) : std::nullopt;
    setenv(name.c_str(), value.c_str(), 1);
  }
  CHECK(aws::usual_region() == "eu-west-1");
  setenv("AWS_PROFILE", "other", 1);
  CHECK(aws::usual_region() == "us-east-1");
  setenv("AWS_DEFAULT_PROFILE", "my lab", 1);  // before AWS_PROFILE, as botocore has it
  CHECK(aws::usual_region() == "eu-north-1");
  setenv("AWS_DEFAULT_REGION", "ap-south-1", 1);
  CHECK(aws::usual_region() == "ap-south-1");
  setenv("AWS_REGION", "sa-east-1", 1);
  CHECK(aws::usual_region() == "sa-east-1");
  for (const auto& [name, value] : before) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
}
