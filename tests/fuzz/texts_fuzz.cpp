// Small texts that people, clouds and files write: durations, sizes, instants, schedules, addresses, INI, XML, base64.
// Each is read or refused as invalid; what is read lies in its limits.
#include "runtime/compute/collective/socket.hpp"
#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/net/credentials/api.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/net/http.hpp"
#include "runtime/core/net/loopback.hpp"
#include "runtime/core/net/mail.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/workflow/engine/timing.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;

namespace {

template <class T>
bool accepted(const Result<T>& read, ErrorKind refusal = ErrorKind::invalid) {
  if (!read) fuzz_check(read.error().kind == refusal && !read.error().message.empty(), "a refusal says why");
  return read.ok();
}

constexpr std::int64_t now_us = 1'764'000'000'000'000;

void check_times(std::string_view text) {
  const Result<std::int64_t> ms = parse_duration_ms(text);
  if (accepted(ms)) {
    fuzz_check(*ms >= 0, "a duration is not negative");
    (void)format_duration_ms(*ms);
  }
  const Result<std::int64_t> instant = parse_utc(text);
  if (accepted(instant)) fuzz_check(parse_utc(format_utc(*instant)).ok(), "an instant that is shown can be read");
  const Result<engine::Timing> timing = engine::Timing::parse(text);
  if (accepted(timing)) fuzz_check(timing->next_us(now_us, now_us - 1) > now_us, "a schedule comes due later");
  fuzz_check(net::parse_retry_after_ms(text, now_us) >= -1, "a wait is not negative");
}

void check_sizes(std::string_view text) {
  const Result<std::int64_t> bytes = parse_size_bytes(text);
  if (accepted(bytes)) {
    fuzz_check(*bytes >= 0, "a size is not negative");
    (void)format_size_bytes(*bytes);
  }
  const Result<std::string> decoded = from_base64(text);
  if (accepted(decoded)) fuzz_check(*from_base64(to_base64(*decoded)) == *decoded, "base64 is read as it was written");
}

void check_addresses(const std::string& text) {
  const Result<collective::Address> address = collective::parse_address(text);
  if (accepted(address)) {
    fuzz_check(address->port > 0 && address->port < 65536 && !address->host.empty(), "an address has host and port");
    const Result<collective::Address> again = collective::parse_address(collective::to_string(*address));
    fuzz_check(again.ok() && again->host == address->host && again->port == address->port, "an address is kept");
  }
  (void)net::is_loopback_host(text);
  (void)net::read_mailto(text);
  (void)net::redact_url(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_times(text);
  check_sizes(text);
  check_addresses(text);
  (void)net::parse_ini(text);
  (void)accepted(net::read_xml(text), ErrorKind::integrity);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string nested;
  for (int i = 0; i < 300; ++i) nested += "<a>";
  return {"1h30m",
          "250ms",
          "2026-11-21T02:03:04Z",
          "2026-11-21T02:03:04.123456+00:00",
          "every 6h",
          "*/5 0-6,12 1,15 jan-mar mon,fri",
          "0 3 29 2 *",
          "Fri, 27 Nov 2026 01:23:57 GMT",
          "120",
          "1.5 MiB",
          "80GB",
          "AAECAw==",
          "10.0.0.1:29500",
          "[::1]:29500",
          "mailto:a@example.org,b@example.org?subject=x",
          "https://user:word@host/path?X-Amz-Signature=abc&x=1#f",
          "[default]\naws_access_key_id = A\naws_secret_access_key=b ; c\n# d\n[profile x]\nregion=eu",
          "<?xml version=\"1.0\"?><a><item>1</item><item>2</item><b c=\"d\">&lt;x&gt;</b><!-- e --></a>",
          nested};
}

std::vector<std::string> fuzz_words() {
  return {"9223372036854775807",
          "9223372036854775808",
          "-1",
          "1e18",
          "1e400",
          "nan",
          "inf",
          "0x10",
          "PB",
          "EiB",
          "d",
          "h",
          "us",
          "*/0",
          "60",
          "30 2",
          "feb",
          "sun-sat",
          "9999-",
          "-02-30",
          "T24:00",
          "Z",
          "[::]",
          ":0",
          "65536",
          "%00",
          "\r\n",
          "<![CDATA[",
          "]]>",
          "<!DOCTYPE a [<!ENTITY b \"c\">]>",
          "&b;",
          "</a>",
          "\xff",
          std::string(300, '<')};
}
