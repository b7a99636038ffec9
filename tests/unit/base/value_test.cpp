#include "runtime/core/base/value.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <ctime>
#include <limits>
#include <random>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/object_text.hpp"
#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"

using namespace rille;

namespace {
std::string round_trip(const Value& v) {
  std::string text = v.to_json();
  Result<Value> back = Value::from_json(text);
  REQUIRE(back.ok());
  CHECK(back->to_json() == text);
  return text;
}
}  // namespace

TEST_CASE("values have one canonical text") {
  Value v;
  v.set("b", 1).set("a", Value::Array{true, nullptr, "x", 0.1});
  CHECK(round_trip(v) == R"({"a":[true,null,"x",0.1],"b":1})");
  CHECK(round_trip(Value(9007199254740991.0)) == "9007199254740991");
  CHECK(round_trip(Value(-0.0)) == "-0.0");
  CHECK(round_trip(Value(1e300)) == "1e300");
  CHECK(round_trip(Value(std::numeric_limits<double>::infinity())) == R"({"$num":"inf"})");
  CHECK(std::isnan(*Value::from_json(round_trip(Value(std::nan(""))))->as_number()));
}

TEST_CASE("bytes, odd keys and number keys survive") {
  std::string bytes("\xff\x00\x80", 3);
  CHECK(*Value::from_json(round_trip(Value(bytes)))->as_string() == bytes);
  Value v;
  v.set("$bytes", "not base64!").set("$$x", 2);
  Value back = *Value::from_json(round_trip(v));
  CHECK(back.text("$bytes") == "not base64!");
  CHECK(back.integer("$$x") == 2);
  Value single;
  single.set("$bytes", "QQ==");
  CHECK(Value::from_json(round_trip(single))->text("$bytes") == "QQ==");
  Value::Map map;
  map.pairs.emplace_back(Value(7), Value("seven"));
  map.pairs.emplace_back(Value(-1), Value("minus"));
  CHECK(round_trip(Value(map)) == R"({"$map":[[-1,"minus"],[7,"seven"]]})");
  Value binary_key;
  binary_key.set(bytes, 1);
  CHECK_FALSE(round_trip(binary_key).empty());
}

TEST_CASE("JSON for another service keeps its keys unchanged") {
  Value inner, v;
  inner.set("$$skip", 1).set("plain", Value::Array{Value().set("$top", 2)});
  v.set("$skipToken", "abc").set("options", std::move(inner));
  CHECK(to_plain_json(v) == R"({"$skipToken":"abc","options":{"$$skip":1,"plain":[{"$top":2}]}})");
  CHECK(plain_json(to_plain_json(v))->text("$skipToken") == "abc");
  CHECK(v.to_json().starts_with(R"({"$$skipToken")"));
}

TEST_CASE("bad JSON names the place") {
  Result<Value> r = Value::from_json("{\"a\": tru}");
  REQUIRE_FALSE(r.ok());
  CHECK(r.error().kind == ErrorKind::invalid);
  CHECK(r.error().message.find("byte 9") != std::string::npos);
  CHECK_FALSE(Value::from_json(std::string(1000, '[')).ok());
  CHECK_FALSE(Value::from_json("{\"$bytes\":\"***\"}").ok());
}

TEST_CASE("no number in JSON leaves its buffer") {
  // The first two write outside of RapidJSON 1.1's (its issue 1251).
  for (const char* tiny : {"128.74836467836484838364836483643636483648e-336", "0.000000000000001e-2147483639",
                           "1e-2147483649", "-1e-99999999999999999999"}) {
    INFO(tiny);
    const auto read = Value::from_json(tiny);
    REQUIRE(read.ok());
    CHECK(std::fabs(*read->as_number()) < 1e-300);
  }
  CHECK(std::signbit(*Value::from_json("-1e-400")->as_number()));
  CHECK(*Value::from_json(std::string(300, '1') + "e-299")->as_number() == Approx(1.111111111));
  for (const std::string& big : {std::string("1e400"), std::string("-1e99999999999999999999"), std::string(400, '9'),
                                 std::string("0.01e2147483648")})
    CHECK(Value::from_json(big).error().message.find("too big") != std::string::npos);
  for (const char* wrong : {"01", "1.", ".5", "+1", "1e", "0x10", "1e+", "-", "NaN", "Infinity"})
    CHECK_FALSE(Value::from_json(wrong).ok());
  CHECK(*Value::from_json("18446744073709551615")->as_number() == 18446744073709551615.0);
  CHECK(*Value::from_json("0.1")->as_number() == 0.1);
}

TEST_CASE("errors cross as values without loss") {
  Error e = make_error(ErrorKind::quota, "too many", "ask");
  e.retryable = true;
  e.retry_after_ms = 1500;
  e.http_status = 429;
  e.provider = "aws";
  e.traceback = "a\nb";
  e.cause = std::make_shared<const Error>(make_error(ErrorKind::network, "reset"));
  Error back = error_from_value(*Value::from_json(error_to_value(e).to_json()));
  CHECK(error_to_value(back).to_json() == error_to_value(e).to_json());
  CHECK(back.cause->kind == ErrorKind::network);
}

TEST_CASE("durations, sizes and money") {
  CHECK(*parse_duration_ms("6h") == 21'600'000);
  CHECK(*parse_duration_ms("250ms") == 250);
  CHECK(*parse_duration_ms("1.5") == 1500);
  CHECK_FALSE(parse_duration_ms("6 hours").ok());
  CHECK_FALSE(parse_duration_ms("-1s").ok());
  CHECK(format_duration_ms(5'400'000) == "1h30m");
  CHECK(*parse_size_bytes("80GB") == 80'000'000'000);
  CHECK(*parse_size_bytes("1.5 MiB") == 1'572'864);
  CHECK_FALSE(parse_size_bytes("big").ok());
  CHECK(*micros_from_dollars(0.1) == 100'000);
  CHECK(format_dollars(1'500'000) == "$1.50");
  CHECK(format_dollars(31'200) == "$0.0312");
  CHECK(cost_micros(3'600'000'000, 1) == 1000);
  CHECK(cost_micros(1, 1) == 1);
}

TEST_CASE("digests match known answers") {
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(derive_uuid({"a", "bc"}) == "5310a587-8878-8ab2-9d5a-d7c3f8503582");
  CHECK(derive_hex({"a", "bc"}, 12) == "5310a5878878");
  CHECK(derive_uuid({"a", "bc"}) != derive_uuid({"ab", "c"}));
  CHECK(derive_uuid({"a"}) == derive_uuid({"a"}));
  CHECK(derive_uuid({"a"})[14] == '8');
  CHECK(*from_base64(to_base64("any bytes")) == "any bytes");
  CHECK_FALSE(is_utf8("\xc0\x80"));
  for (const std::string before : {"", "1234567", "12345678", "123456789012345"}) {  // eight at a time
    CHECK(is_utf8(before + "\xc3\xa9" + "23456789"));
    CHECK_FALSE(is_utf8(before + "\xff" + "23456789"));
    CHECK_FALSE(is_utf8(before + "\xc3"));
  }
}

TEST_CASE("did you mean finds one near word") {
  CHECK(did_you_mean("stpes", {"steps", "step", "data"}) == "steps");
  CHECK(did_you_mean("qqq", {"steps", "data"}).empty());
  CHECK(did_you_mean("use_spot", {"gpu", "spot", "pot"}) == "spot");  // a part of the word
  CHECK(did_you_mean("AdamW", {"adam", "adamw"}) == "adamw");
  CHECK(did_you_mean("http_proxy", {"HTTP_PROXY"}) == "HTTP_PROXY");
}

TEST_CASE("an object's text is that of its Value") {
  const auto fill = [](auto out) {
    decltype(out) inner;
    inner.set("a", 1).set("b", "x");
    out.set("array", Value::Array{1, "two"}).set("binary", std::string("\xff\x01")).set("bool", false);
    out.set("double", 0.1).set("empty", "").set("escaped", "a\"b\\c\n").set("infinite", INFINITY);
    out.set("inner", std::move(inner)).set("large", std::int64_t{1} << 60).set("letters", "gr\xc3\xbc\xc3\x9f");
    out.set("minus", std::int64_t{-9'007'199'254'740'991}).set("null", Value()).set("tilde", "~ \x7f");
    out.set("zero", 0);
    return out;
  };
  CHECK(fill(ObjectText()).take() == fill(Value()).to_json());
  CHECK(ObjectText().take() == "{}");
}

TEST_CASE("an object's members may be set in any order, and again") {
  Value v;
  v.set("b", 1).set("c", 2).set("a", 3).set("c", 4).set("d", 5).set("a", 6);
  CHECK(v.to_json() == R"({"a":6,"b":1,"c":4,"d":5})");
}

TEST_CASE("an instant as text is the calendar's, whatever day was shown before") {
  CHECK(format_utc(0) == "1970-01-01T00:00:00Z");
  CHECK(format_utc(-1'000'000) == "1969-12-31T23:59:59Z");
  CHECK(format_utc(-86'400'000'000) == "1969-12-31T00:00:00Z");
  CHECK(format_utc(1'772'323'199'000'000) == "2026-02-28T23:59:59Z");
  CHECK(format_utc(1'772'323'200'000'000) == "2026-03-01T00:00:00Z");
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const time_t at = static_cast<time_t>(random() % 8'000'000'000ULL) - 2'000'000'000;
    tm parts{};
    gmtime_r(&at, &parts);
    char expected[32];
    REQUIRE(strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0);
    CHECK(format_utc(at * std::int64_t{1'000'000}) == expected);
  }
}
TEST_CASE("JSON within a number of bytes", "[unit]") {
  const Value v(std::string("a\x01\"b"));
  const std::string text = v.to_json();
  CHECK(v.to_json_within(text.size()) == text);
  CHECK(v.to_json_within(text.size() + 5) == text);
  CHECK_FALSE(v.to_json_within(text.size() - 1));
  CHECK_FALSE(v.to_json_within(0));
}
