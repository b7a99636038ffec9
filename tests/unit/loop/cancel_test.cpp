#include "runtime/core/loop/cancel.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace rille;

TEST_CASE("a cancel reaches children in the order of their parents' lists, also many thousand levels down") {
  std::string order;
  CancelSource root;
  auto note = [&order](const char* name) { return [&order, name](const Error&) { order += name; }; };
  auto first = root.token().on_cancel(note("a"));
  CancelSource child(root.token());
  auto second = root.token().on_cancel(note("d"));
  auto inner = child.token().on_cancel(note("b"));
  CancelSource grandchild(child.token());
  auto innermost = grandchild.token().on_cancel(note("c"));
  std::vector<std::unique_ptr<CancelSource>> deep;
  deep.push_back(std::make_unique<CancelSource>(root.token()));
  for (int i = 0; i < 100'000; ++i) deep.push_back(std::make_unique<CancelSource>(deep.back()->token()));
  auto last = deep.back()->token().on_cancel(note("e"));
  root.cancel(make_error(ErrorKind::cancelled, "enough"));
  CHECK(order == "abcde");
  CHECK(deep.back()->token().reason().message == "enough");
}

TEST_CASE("a callback may cancel other sources, and destroy the source that is being cancelled") {
  auto source = std::make_unique<CancelSource>();
  CancelSource other;
  bool reached = false;
  auto on_other = other.token().on_cancel([&](const Error&) { reached = true; });
  auto hold = source->token().on_cancel([&](const Error& why) {
    other.cancel(why);
    CHECK(reached);
    source.reset();
  });
  auto after = source->token().on_cancel([&](const Error&) { reached = false; });
  source->cancel(make_error(ErrorKind::cancelled, "enough"));
  CHECK_FALSE(reached);
}

TEST_CASE("a cancel at the end of a thread, from an object that is older than the thread's first cancel") {
  struct Late {
    CancelSource source;
    CancelSource child{source.token()};
    CancelToken::Registration hold;
    ~Late() { source.cancel(make_error(ErrorKind::cancelled, "the thread ends")); }
  };
  bool reached = false;
  std::thread([&reached] {
    static thread_local Late late;
    late.hold = late.child.token().on_cancel([&reached](const Error&) { reached = true; });
    CancelSource first;
    first.cancel(make_error(ErrorKind::cancelled, "first"));
  }).join();
  CHECK(reached);
}
