#include <catch2/catch.hpp>

#include "runtime/core/net/credentials/api.hpp"

using namespace rille;

TEST_CASE("a service's XML is a value") {
  const Value v = net::read_xml(
                      "<?xml version='1.0'?><r><!-- c --><set><item>1</item><item>2</item></set><x/>"
                      "<x>b</x></r>")
                      .value();
  CHECK(v.to_json() == R"({"r":{"set":["1","2"],"x":["","b"]}})");
  CHECK(net::read_xml("<r><a></r>").error().kind == ErrorKind::integrity);
}

TEST_CASE("deep XML is refused before it overflows the stack") {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "<a>";
  CHECK(net::read_xml(deep).error().kind == ErrorKind::integrity);
  for (int i = 0; i < 1'000'000; ++i) deep += "</a>";
  CHECK(net::read_xml(deep).error().message.find("128") != std::string::npos);
  // Depth that a look at the text alone would miss.
  for (const char* level : {"<a x='/>'>", "<!-- </a> --><a>", "<![CDATA[</a></a>]]><a>"}) {
    INFO(level);
    std::string hidden, end;
    for (int i = 0; i < 200'000; ++i) hidden += level, end += "</a>";
    CHECK(net::read_xml(hidden + end).error().message.find("128") != std::string::npos);
  }
  std::string flat = "<r>";
  for (int i = 0; i < 300'000; ++i) flat += "<a x='1'/><b>1</b>";
  CHECK(net::read_xml(flat + "</r>").ok());  // in as many steps as there are elements
}
