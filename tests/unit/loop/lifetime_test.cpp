#include "runtime/core/loop/lifetime.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

using namespace rille;

namespace {

struct Object {
  // Runs while the object is destroyed, after the Lifetime has ended.
  struct AtTheEnd {
    std::function<void()> fn;
    ~AtTheEnd() {
      if (fn) fn();
    }
  };
  AtTheEnd at_the_end;
  std::vector<std::string> seen;
  Lifetime life;
};

Task<void> note_after_pause(Loop& loop, Object& object, bool& resumed) {
  const Lifetime::Watch life = object.life.watch();
  (void)co_await sleep_for(loop, 1);
  resumed = true;
  if (life.ended()) co_return;
  object.seen.push_back("resumed");
}

}  // namespace

TEST_CASE("a watch says from the start of its object's destruction on that the object is gone") {
  auto object = std::make_unique<Object>();
  const Lifetime::Watch life = object->life.watch(), copy = life;
  CHECK(life.alive());
  CHECK_FALSE(life.ended());
  bool alive_inside = true;
  object->at_the_end.fn = [&] { alive_inside = copy.alive(); };
  object.reset();
  CHECK_FALSE(alive_inside);
  CHECK(life.ended());
}

TEST_CASE("a guarded callback passes its arguments on, and does nothing once its object is gone") {
  auto object = std::make_unique<Object>();
  int calls = 0;
  const std::function<void(std::unique_ptr<std::string>, int)> note =
      object->life.guard([&calls, to = object.get()](std::unique_ptr<std::string> text, int times) {
        ++calls;
        for (int i = 0; i < times; ++i) to->seen.push_back(*text);
      });
  note(std::make_unique<std::string>("a"), 2);
  CHECK(object->seen == std::vector<std::string>{"a", "a"});
  object.reset();
  note(std::make_unique<std::string>("b"), 1);
  CHECK(calls == 1);
}

TEST_CASE("a guarded callback may destroy its own object") {
  auto object = std::make_unique<Object>();
  const std::function<void()> end = object->life.guard([&] { object.reset(); });
  end();
  end();
  CHECK(object == nullptr);
}

TEST_CASE("a coroutine and a post that outlive their object leave it alone") {
  auto loop = *Loop::create();
  auto object = std::make_unique<Object>();
  bool resumed = false, posted = false;
  loop->spawn(note_after_pause(*loop, *object, resumed));
  loop->post(object->life.guard([&] { posted = true; }));
  object.reset();
  loop->run_until([&] { return resumed; });
  CHECK(resumed);
  CHECK_FALSE(posted);

  Object kept;
  resumed = false;
  loop->spawn(note_after_pause(*loop, kept, resumed));
  loop->post(kept.life.guard([&] { kept.seen.push_back("posted"); }));
  loop->run_until([&] { return resumed; });
  CHECK(kept.seen == std::vector<std::string>{"posted", "resumed"});
}
