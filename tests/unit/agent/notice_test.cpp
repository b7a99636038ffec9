// The notice that a machine will be taken away, on its way from the file or the runner to the worker and back.
#include "runtime/workflow/agent/notice.hpp"

#include <atomic>
#include <optional>

#include "runtime/core/store/instance_dir.hpp"
#include "tests/unit/agent/fixture.hpp"
#include "tests/unit/net/scripted_server.hpp"

using namespace rille;
using namespace rille::agent;

namespace {

struct NoticeFixture : AgentFixture {
  NoticeFixture() { prefix = {"env", "RILLE_TEST_TICK=5"}; }
  std::int64_t in_seconds(std::int64_t s) const { return loop->clock().wall_us() + s * 1'000'000; }
  Value result(AgentClient& client, const std::string& key, std::int64_t* noticed = nullptr) {
    AttachHandlers handlers;
    if (noticed) handlers.notice = [noticed](std::int64_t deadline_us) { *noticed = deadline_us; };
    auto status = wait(client.attach(key, 0, handlers));
    if (!status || !status->result || !*status->result) FAIL("the call gave nothing");
    return **status->result;
  }
};

}  // namespace

TEST_CASE_METHOD(NoticeFixture, "a notice in the file reaches calls that run, those that start later, and the runner") {
  auto client = connect();
  REQUIRE(wait(client->start(request("early", R"({"do":"notice"})"))).ok());
  const std::int64_t deadline = in_seconds(60);
  REQUIRE(store::write_notice(directory, deadline).ok());
  std::int64_t noticed = 0;
  Value told = result(*client, "early", &noticed);
  CHECK(told.integer("deadline") == deadline);
  CHECK_FALSE(told.boolean("leave"));  // no replacement has been announced
  CHECK(noticed == deadline);
  REQUIRE(wait(client->start(request("late", R"({"do":"notice"})"))).ok());
  CHECK(result(*client, "late").integer("deadline") == deadline);
}

TEST_CASE_METHOD(NoticeFixture, "a runner can ask one call to leave repeatedly; the other calls only see the notice") {
  auto client = connect();
  REQUIRE(wait(client->start(request("leaves", R"({"do":"notice","leave":true})"))).ok());
  REQUIRE(wait(client->start(request("stays", hold()))).ok());
  const std::int64_t deadline = in_seconds(60);
  REQUIRE(wait(client->preempt("leaves", deadline, false)).ok());
  CHECK(wait(client->status("leaves"))->state == CallState::running);
  REQUIRE(wait(client->preempt("leaves", deadline, true)).ok());
  REQUIRE(wait(client->preempt("leaves", deadline, false)).ok());  // does not take it back
  CHECK(result(*client, "leaves").boolean("leave"));
  CHECK(wait(client->preempt("leaves", deadline, true)).ok());  // it is done
  CHECK(wait(client->preempt("nobody", deadline, true)).ok());
  CHECK(wait(client->status("stays"))->state == CallState::running);
  let_go();
  CHECK(result(*client, "stays") == Value(42));
}

TEST_CASE_METHOD(NoticeFixture, "an unreadable notice and one whose time has passed are ignored") {
  auto client = connect();
  REQUIRE(wait(client->start(request("k", R"({"do":"notice"})"))).ok());
  write(directory + "/notice.json", "{\"deadline_wall_us\": \"soon\"");
  CHECK_FALSE(store::read_notice(directory));
  REQUIRE(store::write_notice(directory, in_seconds(-1)).ok());
  CHECK(store::read_notice(directory));
  // The daemon looks many times while another call comes and goes.
  REQUIRE(wait(client->start(request("other", R"({"do":"lines","count":3})"))).ok());
  (void)result(*client, "other");
  CHECK(wait(client->status("k"))->state == CallState::running);
  const std::int64_t deadline = in_seconds(60);
  REQUIRE(store::write_notice(directory, deadline).ok());
  CHECK(result(*client, "k").integer("deadline") == deadline);
}

TEST_CASE("what a metadata service says: an instant in its form is one, and no page is taken for a date") {
  const std::unique_ptr<Loop> loop = Loop::create().value();
  std::string page;
  std::atomic<bool> answered = false;
  ScriptedServer server([&](const ScriptedServer::Request&, ScriptedServer::Wire& wire) {
    wire.answer(200, page);
    answered = true;
  });
  NoticeSpec text, list;
  text.url = list.url = server.url("/notice");
  list.list = "Events", list.kind_field = "EventType", list.kind = "Preempt", list.field = "NotBefore";
  const auto asked = [&](const NoticeSpec& spec, const std::string& says) {
    page = says;
    const NoticeSpec read = NoticeSpec::from_value(Value::from_json(spec.to_value().to_json()).value());
    const auto source = notice_of_metadata(*loop, read);
    std::optional<std::int64_t> told;
    answered = false;
    for (int looks = 0, since = 0; looks < 1'000 && since < 10 && !told; ++looks, since += answered) {
      told = run_blocking(*loop, source->look({})).value();
      (void)run_blocking(*loop, sleep_for(*loop, 10));
    }
    CHECK(answered);
    return told;
  };
  constexpr std::int64_t at_us = 2'000'000'000'000'000;
  CHECK(asked(text, "2033-05-18T03:33:20Z") == at_us);
  CHECK(asked(text, "2033-05-18 03:33:20") == at_us);
  for (const char* other : {"Wed, 18 May 2033 03:33:20 GMT", "120", "18 May 2033", "<html>18 May 2033</html>"}) {
    INFO(other);
    CHECK_FALSE(asked(text, other));
  }
  const auto event = [](const char* at) {
    return R"({"Events":[{"EventType":"Preempt","NotBefore":")" + std::string(at) + R"("}]})";
  };
  const auto of_list = asked(list, event("Wed, 18 May 2033 03:33:20 GMT"));
  REQUIRE(of_list);
  CHECK(std::abs(*of_list - at_us) < 2'000'000);
}

TEST_CASE("a notice file of an older Rille that names its cloud: its url is ignored") {
  Value old;
  old.set("cloud", "azure").set("url", "http://127.0.0.1:1");
  CHECK(NoticeSpec::from_value(old).url.empty());
  old.as_object()->erase("cloud");
  CHECK(NoticeSpec::from_value(old).url == "http://127.0.0.1:1");
}
