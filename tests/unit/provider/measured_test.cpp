// What trainings were measured to do: kept, found again, and turned into what a query ranks by.
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct Home {
  std::string path;
  Home() {
    char name[] = "/tmp/rille-measured-XXXXXX";
    path = mkdtemp(name);
  }
  ~Home() { std::filesystem::remove_all(path); }
};

constexpr std::int64_t noon_us = 1'800'000'000'000'000;

Measurement measured(const char* gpu, std::int64_t memory_gb, double per_second, std::int64_t at_us = noon_us) {
  Measurement m;
  m.workload = "gpt", m.provider = "aws", m.offer = std::string("us-east-1/") + gpu, m.region = "us-east-1";
  m.gpu = gpu, m.gpu_memory_bytes = memory_gb << 30, m.gpu_count = 8;
  m.per_second = per_second, m.steps = 100, m.batch = 4096, m.params = 124'000'000, m.precision = "bf16";
  m.run = "r1", m.at_us = at_us, m.price_micros_per_hour = 16'000'000;
  return m;
}

Value options(const char* json) { return Value::from_json(json).value(); }

Result<OfferQuery> resolved(const Home& home, const char* json, Workload* out = nullptr) {
  Value v = options(json);
  RILLE_TRY(Workload w, Workload::resolve(home.path, v));
  if (out) *out = w;
  return OfferQuery::from_value(v);
}

double number_of(const OfferQuery& query, const char* gpu, std::int64_t memory_gb) {
  return gpu_worth(query, gpu, memory_gb << 30).tokens_per_second;
}

}  // namespace

TEST_CASE("a measurement rests in the home without loss, the newest of its kind") {
  Home home;
  CHECK(measurements(home.path).value().empty());
  REQUIRE(keep(home.path, measured("A100", 80, 4100)).ok());
  REQUIRE(keep(home.path, measured("H100", 80, 9500, noon_us + 5'000'000)).ok());
  REQUIRE(keep(home.path, measured("A100", 80, 4300, noon_us + 1'000'000)).ok());
  const std::vector<Measurement> all = measurements(home.path).value();
  REQUIRE(all.size() == 2);
  CHECK(all[0].gpu == "H100");  // the newest first
  CHECK(all[1].to_value() == measured("A100", 80, 4300, noon_us + 1'000'000).to_value());
  // 8 x 4300 tokens a second for 16 dollars an hour
  CHECK(all[1].per_dollar() == Approx(8 * 4300 * 3600 / 16.0));
  Measurement other = measured("A100", 80, 2000);
  other.precision = "f32";
  REQUIRE(keep(home.path, other).ok());
  CHECK(measurements(home.path).value().size() == 3);
  other.price_micros_per_hour = price_unknown;
  CHECK(other.per_dollar() == 0);
  CHECK(other.to_value()["price_per_hour"].is_null());
}

TEST_CASE("several write at once, and none is lost") {
  Home home;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&home, w] {
      for (int i = 0; i < 10; ++i) {
        Measurement m = measured("T4", 16, 100 + i);
        m.workload = "w" + std::to_string(w) + "-" + std::to_string(i);
        (void)keep(home.path, m);
      }
    });
  for (std::thread& t : writers) t.join();
  CHECK(measurements(home.path).value().size() == 40);
}

TEST_CASE("an unreadable file is reported, and not overwritten") {
  Home home;
  for (const char* text : {"{", "{}", R"({"measured":[{"workload":"gpt"}]})", R"({"measured":[7]})",
                           R"({"measured":[{"workload":"gpt","per_second":-1,"measured_at":"2026-11-22T00:00:00Z"}]})",
                           R"({"measured":[{"workload":"gpt","per_second":1,"measured_at":"noon"}]})"}) {
    INFO(text);
    REQUIRE(store::write_file_atomic(home.path + "/measured.json", text).ok());
    CHECK(measurements(home.path).error().kind == ErrorKind::integrity);
    CHECK_FALSE(keep(home.path, measured("T4", 16, 100)).ok());
    CHECK(store::read_file(home.path + "/measured.json").value() == text);
  }
}

TEST_CASE("a workload ranks by measurements, whichever provider offers the GPU") {
  Home home;
  REQUIRE(keep(home.path, measured("A100", 80, 4100)).ok());
  REQUIRE(keep(home.path, measured("NVIDIA H100 80GB HBM3", 80, 9500)).ok());
  Measurement cpu = measured("", 0, 10);
  REQUIRE(keep(home.path, cpu).ok());
  Workload workload;
  const OfferQuery query = resolved(home, R"({"gpu":"any","workload":"gpt"})", &workload).value();
  CHECK(query.rank == Rank::tokens_per_dollar);
  CHECK(number_of(query, "A100-SXM4-80GB", 80) == 4100);
  CHECK(number_of(query, "A100", 80) == 4100);
  CHECK(number_of(query, "A100", 40) == 0);
  CHECK(number_of(query, "H100", 80) == 9500);
  CHECK(number_of(query, "T4", 16) == 0);
  CHECK(workload.source_of("A100", std::int64_t{80} << 30) == "measured");
  CHECK(workload.source_of("T4", std::int64_t{16} << 30) == "not measured");
  CHECK(workload.source_of("", 0) == "not measured");

  Value list(Value::Array{options(R"({"id":"a","gpu":"H100","gpu_memory_bytes":85899345920})"),
                          options(R"({"id":"b","gpu":""})"), options(R"({"provider":"x","error":"no keys"})")});
  workload.mark(list);
  CHECK((*list.as_array())[0].text("tokens_from") == "measured");
  CHECK((*list.as_array())[1].text("tokens_from") == "not measured");
  CHECK((*list.as_array())[2]["tokens_from"].is_null());
}

TEST_CASE("the newest measurement of a model counts, and the user's own table more") {
  Home home;
  REQUIRE(keep(home.path, measured("A100", 80, 4100)).ok());
  Measurement later = measured("A100 SXM", 80, 4400, noon_us + 1'000'000);
  REQUIRE(keep(home.path, later).ok());
  CHECK(number_of(resolved(home, R"({"workload":"gpt"})").value(), "A100", 80) == 4400);
  Workload workload;
  // "A100" says less than "A100 80GB SXM", and still has the last word.
  const OfferQuery own =
      resolved(home, R"({"workload":"gpt","tokens_per_second":{"A100":1,"T4":2}})", &workload).value();
  CHECK(number_of(own, "A100", 80) == 1);
  CHECK(number_of(own, "T4", 16) == 2);
  CHECK(workload.source_of("A100", std::int64_t{80} << 30) == "given");
}

TEST_CASE("GPUs that were not measured can be taken by their TFLOPs") {
  Home home;
  REQUIRE(keep(home.path, measured("A100", 80, 3120)).ok());  // 10 for each of its 312 TFLOPs
  Workload workload;
  const OfferQuery query =
      resolved(home, R"({"workload":"gpt","estimated":true,"tokens_per_second":{"T4":7}})", &workload).value();
  CHECK(number_of(query, "A100", 80) == 3120);
  CHECK(number_of(query, "A100", 40) == Approx(3120));
  CHECK(number_of(query, "H100", 80) > 5000);
  CHECK(number_of(query, "T4", 16) == 7);
  CHECK(workload.source_of("A100", std::int64_t{80} << 30) == "measured");
  CHECK(workload.source_of("A100", std::int64_t{40} << 30) == "estimated");
  CHECK(workload.source_of("T4", std::int64_t{16} << 30) == "given");
  CHECK(number_of(resolved(home, R"({"workload":"gpt","estimated":false})").value(), "H100", 80) == 0);
}

TEST_CASE("a workload that cannot be meant is refused") {
  Home home;
  const auto refused = [&home](const char* json, const char* text) {
    INFO(json);
    const Result<OfferQuery> q = resolved(home, json);
    REQUIRE_FALSE(q.ok());
    CHECK(q.error().kind == ErrorKind::invalid);
    CHECK((q.error().message + " | " + q.error().hint).find(text) != std::string::npos);
  };
  refused(R"({"workload":"gpt"})", "there are no measurements of that name | train once");
  REQUIRE(keep(home.path, measured("A100", 80, 4100)).ok());
  refused(R"({"workload":"gpd"})", "did you mean 'gpt'?");
  refused(R"({"workload":"something else"})", "measured are gpt");
  refused(R"({"workload":""})", "expected a name");
  refused(R"({"workload":7})", "expected a name");
  refused(R"({"estimated":true})", "expected a name");
  refused(R"({"workload":"gpt","estimated":1})", "true or false");
  refused(R"({"workload":"gpt","rank":"price"})", "does not apply to rank");
  refused(R"({"workload":"gpt","tokens_per_second":"fast"})", "tokens_per_second");
  refused(R"({"rank":"tokens_per_dollar"})", "workload = ");
  Measurement cpu = measured("", 0, 10);
  cpu.workload = "small";
  REQUIRE(keep(home.path, cpu).ok());
  refused(R"({"workload":"small"})", "measured on CPUs only");
  // With a table of one's own the name may be new.
  CHECK(resolved(home, R"({"workload":"new","tokens_per_second":{"T4":7}})").ok());
  Value rent = options(R"({"workload":"gpt","estimated":true,"rank":"tokens_per_dollar","gpu":"T4"})");
  Workload::leave_out(rent);
  CHECK(rent == options(R"({"gpu":"T4"})"));
}
