// The notice that a spot machine will be taken away, as the machine itself reads it from its cloud's metadata service.
#include "runtime/workflow/agent/notice.hpp"

#include <cmath>

#include "runtime/workflow/provider/manner.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

// As the machine's file brings it to the agent.
std::unique_ptr<agent::NoticeSource> asks(Loop& loop, const std::string& metadata) {
  const Value written = manner_of(fake_name()).notice(metadata).to_value();
  return agent::notice_of_metadata(loop, NoticeSpec::from_value(Value::from_json(written.to_json()).value()));
}

}  // namespace

TEST_CASE_METHOD(Fake, "notice: what asks the metadata service on the machine knows when it ends") {
  const std::string service = "http://127.0.0.1:" + std::to_string(told.integer("port")) + "/_metadata/";
  REQUIRE((manner_of(fake_name()).notice != nullptr) == has().notice);
  if (!has().notice) return;
  const auto made = wait(provider->create(order("notice", true), {}));
  if (!made) FAIL(made.error().message);
  until(made->id, MachineState::live);
  const auto machine = [this] { return (*control("state")["machines"].as_array())[0]; };
  const std::string id = machine().text("id");
  control("reclaim", Value().set("id", id).set("in_seconds", static_cast<double>(provider->traits().spot_notice_s)));
  const double ends_s = machine().number("reclaim");

  const auto source = asks(*loop, service + id);
  std::optional<std::int64_t> deadline_us;
  for (int i = 0; i < 500 && !deadline_us; ++i) {
    deadline_us = wait(source->look({})).value();
    (void)wait(sleep_for(*loop, 10));
  }
  REQUIRE(deadline_us);
  const double said_s = static_cast<double>(*deadline_us) / 1e6;
  const bool tells_when = fake_name() != "gcp" && fake_name() != "huawei";  // these say only that it will be
  const double expected_s = tells_when ? ends_s
                                       : static_cast<double>(loop->clock().wall_us()) / 1e6 +
                                             static_cast<double>(provider->traits().spot_notice_s);
  CHECK(std::abs(said_s - expected_s) < 10);
  CHECK(wait(source->look({})).value() == deadline_us);  // what was said once stands
  REQUIRE(wait(provider->terminate(made->id, {})));
}

TEST_CASE_METHOD(Fake, "notice: without an interruption, or without the metadata service, there is no notice") {
  const std::string service = "http://127.0.0.1:" + std::to_string(told.integer("port")) + "/_metadata/";
  REQUIRE((manner_of(fake_name()).notice != nullptr) == has().notice);
  if (!has().notice) return;
  const auto made = wait(provider->create(order("calm", true), {}));
  if (!made) FAIL(made.error().message);
  until(made->id, MachineState::live);
  const std::string id = (*control("state")["machines"].as_array())[0].text("id");
  for (const std::string& url : {service + id, service + "nobody", std::string("http://127.0.0.1:1")}) {
    const auto source = asks(*loop, url);
    CHECK_FALSE(wait(source->look({})).value());
    (void)wait(sleep_for(*loop, 300));  // while its question is answered
    CHECK_FALSE(wait(source->look({})).value());
  }
  REQUIRE(wait(provider->terminate(made->id, {})));
}
