// Metrics of calls: their lines, and their way from a worker over its agent to a runner.
#include "runtime/workflow/agent/metric.hpp"

#include <cmath>
#include <limits>

#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/agent/heard.hpp"
#include "runtime/workflow/agent/printed_metrics.hpp"
#include "tests/unit/agent/fixture.hpp"

using namespace rille;
using namespace rille::agent;

TEST_CASE("a metric is a line that gives it back", "[metric]") {
  for (const double value : {2.25, -1e300, 0.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Metric m;
    m.name = "loss </script> \"ü\"", m.value = value, m.at_us = 1'732'787'700'000'001, m.step = 3, m.gpu = 7;
    const std::string line = metric_line(m);
    CHECK(line.find('\n') == line.size() - 1);
    const Metric read = metric_from_line(line).value();
    CHECK(read.name == m.name);
    CHECK((read.value == value || (std::isnan(read.value) && std::isnan(value))));
    CHECK(read.at_us == m.at_us);
    CHECK(read.step == m.step);
    CHECK(read.gpu == 7);
  }
  Metric bare;
  bare.name = "x";
  CHECK(metric_line(bare) == "{\"at_us\":0,\"name\":\"x\",\"value\":0}\n");
  CHECK_FALSE(metric_from_line(metric_line(bare))->step);
}

TEST_CASE("a program's lines are metrics", "[metric]") {
  const std::string output =
      "loading\nrille.metric loss=2.5 tokens/s=1e3 step=120\n 5%\r50%\rrille.metric a=b=-1\r\n"
      "rille.metric loss=nan\trille=inf\nrille.metric last=0.5";
  const std::string expected =
      "{\"at_us\":7,\"name\":\"loss\",\"step\":120,\"value\":2.5}\n"
      "{\"at_us\":7,\"name\":\"tokens/s\",\"step\":120,\"value\":1000}\n"
      "{\"at_us\":7,\"name\":\"a=b\",\"value\":-1}\n"
      "{\"at_us\":7,\"name\":\"loss\",\"value\":{\"$num\":\"nan\"}}\n"
      "{\"at_us\":7,\"name\":\"rille\",\"value\":{\"$num\":\"inf\"}}\n"
      "{\"at_us\":7,\"name\":\"last\",\"value\":0.5}\n";
  for (std::size_t step : {1, 2, 7, 1000}) {
    PrintedMetrics printed;
    std::string lines;
    for (std::size_t i = 0; i < output.size(); i += step) lines += printed.add(output.substr(i, step), 7);
    lines += printed.add("\n", 7);
    CHECK(lines == expected);
    CHECK(check_metric_lines(lines).ok());
  }
}

TEST_CASE("a program's other lines are only output", "[metric]") {
  for (const std::string& line :
       {std::string("rille.metric"), std::string("rille.metric "), std::string("rille.metric loss"),
        std::string("rille.metric loss=tensor(2.5)"), std::string("rille.metric loss=1 and more"),
        std::string("rille.metric =1"), std::string("rille.metric step=nan loss=1"), std::string("rille.metric step=1"),
        std::string("rille.metric loss= 1"), std::string("rille.metric \xff=1"), std::string("xrille.metric a=1"),
        "rille.metric " + std::string(129, 'x') + "=1",
        "rille.metric a=1 " + std::string(metric_line_bytes_max, ' ')}) {
    INFO(Value(line).to_json());
    PrintedMetrics printed;
    CHECK(printed.add(line + "\n", 7).empty());
    CHECK(printed.add("rille.metric a=1\n", 7) == "{\"at_us\":7,\"name\":\"a\",\"value\":1}\n");
  }
}

TEST_CASE("what is no metric is refused", "[metric]") {
  CHECK(is_metric_name(std::string(128, 'x')));
  for (const std::string& name : {std::string(), std::string(129, 'x'), std::string("a\nb"), std::string("a\0b", 3),
                                  std::string("\x1b[2J"), std::string("\xff")}) {
    INFO(Value(name).to_json());
    CHECK_FALSE(is_metric_name(name));
    CHECK_FALSE(metric_from_line(Value().set("at_us", 1).set("name", name).set("value", 1).to_json()));
  }
  for (const char* line : {"", "{}", "[]", "x", R"({"at_us":1,"name":"x"})", R"({"at_us":-1,"name":"x","value":1})",
                           R"({"at_us":1,"name":"x","value":"1"})", R"({"at_us":1,"name":"x","value":1,"step":"2"})",
                           R"({"at_us":1,"name":"x","value":1,"gpu":-1})", R"({"at_us":9e18,"name":"x","value":1})"})
    CHECK_FALSE(metric_from_line(line));
  const std::string good = R"({"at_us":1,"name":"x","value":1})";
  CHECK(check_metric_lines(good + "\n" + good + "\n"));
  CHECK_FALSE(check_metric_lines(good));
  CHECK_FALSE(check_metric_lines(good + "\n\n"));
  Value header;
  header.set("event", "metrics").set("offset", 5);
  CHECK(event_from(header, good + "\n")->offset == 5);
  CHECK(event_from(header, good + "\nx\n").error().code == broken_protocol);
}

TEST_CASE_METHOD(AgentFixture, "the metrics of a call are kept on its machine, and sent from where a runner has them",
                 "[metric]") {
  auto client = connect();
  const std::string file = directory + "/go";
  REQUIRE(wait(client->start(request("k", R"({"do":"metrics","count":20000,"file":")" + file + "\"}"))).ok());
  std::string first, rest;
  CancelSource leaves;
  AttachHandlers handlers;
  handlers.metrics = [&](std::string_view lines, std::int64_t offset) {
    CHECK(offset == static_cast<std::int64_t>(first.size()));
    first += lines;
    if (first.find("\"step\":10000,") != std::string::npos)
      leaves.cancel(make_error(ErrorKind::cancelled, "the runner leaves in the middle"));
  };
  CHECK_FALSE(wait(client->attach("k", 0, handlers, leaves.token())).ok());
  client.reset();
  CHECK(first.back() == '\n');
  write(file, "");
  client = connect();
  handlers.metrics = [&](std::string_view lines, std::int64_t offset) {
    CHECK(offset == static_cast<std::int64_t>(first.size() + rest.size()));
    rest += lines;
  };
  handlers.metrics_offset = static_cast<std::int64_t>(first.size());
  REQUIRE(wait(client->attach("k", 0, handlers))->state == CallState::done);
  std::int64_t step = 0;
  const std::string all = first + rest;
  for (std::size_t i = 0, end; (end = all.find('\n', i)) != all.npos; i = end + 1) {
    const Metric m = metric_from_line(std::string_view(all).substr(i, end - i)).value();
    if (m.name != "loss") continue;  // the machine's load
    ++step;
    REQUIRE(m.step.value_or(-1) == static_cast<double>(step));
    REQUIRE(m.value == 1.0 / static_cast<double>(step));
  }
  CHECK(step == 20000);
  // A runner that has more than the machine: the machine has forgotten the call, and begun it anew.
  std::int64_t begins = -1;
  handlers.metrics = [&](std::string_view, std::int64_t offset) { begins = begins < 0 ? offset : begins; };
  handlers.metrics_offset = static_cast<std::int64_t>(all.size()) + 1;
  REQUIRE(wait(client->attach("k", 0, handlers))->state == CallState::done);
  CHECK(begins == 0);
}
