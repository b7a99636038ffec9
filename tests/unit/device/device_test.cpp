// Memory to the byte, and the lane.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "runtime/compute/device/cpu.hpp"
#include "runtime/compute/device/lane_busy.hpp"
#include "runtime/compute/device/owner.hpp"

namespace rille::device {

TEST_CASE("buffers are counted, cached and limited", "[unit][device]") {
  auto cpu = CpuDevice::create(Lane::shared(1));
  CHECK(cpu->name() == "cpu");
  CHECK(cpu->kind() == Kind::cpu);
  void* data;
  {
    auto a = cpu->allocate(1000);
    REQUIRE(a.ok());
    data = a->data();
    CHECK(reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
    const Buffer copy = *a;
    CHECK(cpu->memory().live_bytes == 1024);
    CHECK(cpu->memory().live_buffers == 1);
    CHECK(cpu->memory_summary() == "1 x 1.0 kB; by owner: other 1.0 kB in 1");
  }
  CHECK(cpu->memory().live_bytes == 0);
  CHECK(cpu->memory().cached_bytes == 1024);
  CHECK(cpu->memory().peak_bytes == 1024);
  CHECK(cpu->allocate(990)->data() == data);  // from the cache
  cpu->release_cache();
  CHECK(cpu->memory().cached_bytes == 0);
  CHECK(cpu->allocate(0)->data() == nullptr);
}

TEST_CASE("the limit counts what is cached, and gives it up first", "[unit][device]") {
  auto cpu = CpuDevice::create(Lane::shared(1));
  cpu->set_memory_limit(4096);
  {
    auto a = cpu->allocate(3072);
    REQUIRE(a.ok());
  }
  auto b = cpu->allocate(2048);
  REQUIRE(b.ok());
  CHECK(cpu->memory().cached_bytes == 0);
  const auto c = cpu->allocate(3000);
  REQUIRE_FALSE(c.ok());
  CHECK(c.error().kind == ErrorKind::memory);
  CHECK(c.error().hint.find("1 x 2.0 kB") != std::string::npos);
  CHECK(cpu->memory().live_bytes == 2048);
}

TEST_CASE("running out of memory names the owners, the largest first", "[unit][device]") {
  auto cpu = CpuDevice::create(Lane::shared(1));
  cpu->set_memory_limit(8192);
  std::vector<Buffer> held;
  const auto take = [&](const char* who, std::size_t bytes) {
    const OwnedBy owner(who);
    held.push_back(*cpu->allocate(bytes));
  };
  take("fill", 1024);
  take(interned(std::string("arena of ") + "train.lua:3"), 4096);
  take(interned("fill"), 1024);  // equal text elsewhere: the same owner
  {
    const OwnedBy outer("outer"), inner("inner");
    CHECK(OwnedBy::now() == std::string("inner"));
  }
  CHECK(OwnedBy::said() == nullptr);
  const auto c = cpu->allocate(3000);
  REQUIRE_FALSE(c.ok());
  CHECK(c.error().hint ==
        "live by size: 1 x 4.1 kB, 2 x 1.0 kB; by owner: arena of train.lua:3 4.1 kB in 1, "
        "fill 2.0 kB in 2. Use a smaller batch, or free tensors");
  held.pop_back();
  CHECK(cpu->memory_summary() ==
        "1 x 4.1 kB, 1 x 1.0 kB; by owner: arena of train.lua:3 4.1 kB in 1, fill 1.0 kB in 1");
  held.clear();
  CHECK(cpu->memory_summary() == "nothing is live");
  for (char i = 'a'; i < 'k'; ++i) take(interned(std::string(1, i)), 64);
  CHECK(cpu->memory_summary().ends_with(" and 2 smaller owners"));
}

TEST_CASE("buffers outlive the last handle of their device", "[unit][device]") {
  Buffer buffer;
  {
    auto cpu = CpuDevice::create(Lane::shared(1));
    buffer = *cpu->allocate(64);
  }
  *static_cast<int*>(buffer.data()) = 1;
}

TEST_CASE("there is one lane; it runs jobs in order, and finishes queued jobs at its end", "[unit][device]") {
  std::vector<int> order;
  {
    auto lane = Lane::shared(1);
    CHECK(Lane::shared(7) == lane);
    CHECK(lane->threads() >= 1);
    for (int i = 0; i < 100; ++i) lane->post([&order, i](kernels::LaneState&) { order.push_back(i); });
  }
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[std::size_t(i)] == i);
}

TEST_CASE("types have names", "[unit][device]") {
  CHECK(*parse_dtype("f32") == DType::f32);
  CHECK(*parse_dtype("bool") == DType::boolean);
  CHECK(parse_dtype("float").error().hint.find("bf16") != std::string::npos);
}

TEST_CASE("a job delivers its result after it has released its buffers", "[unit][device]") {
  auto lane = Lane::of_device("test");
  std::weak_ptr<int> seen;
  std::promise<std::pair<int, bool>> told;
  {
    auto held = std::make_shared<int>(7);
    seen = held;
    std::promise<void> go;
    lane->post([gone = go.get_future().share()](kernels::LaneState&) { gone.wait(); });
    lane->post(telling([held = std::move(held)](kernels::LaneState&) { return *held; },
                       [&](int n) {
                         told.set_value({n, seen.expired()});
                       }));
    go.set_value();
  }
  CHECK(told.get_future().get() == std::pair(7, true));
}

TEST_CASE("a process that ends waits for what jobs still close", "[unit][device]") {
  struct Slow {
    std::atomic<bool>& closed;
    ~Slow() {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      closed = true;
    }
  };
  std::atomic<bool> closed{false};
  auto lane = Lane::of_device("test");
  lane->post([slow = std::make_shared<Slow>(closed)](kernels::LaneState&) {});
  CHECK_FALSE(lanes_settle(std::chrono::milliseconds(5)));
  CHECK(lanes_settle(std::chrono::seconds(20)));
  CHECK(closed);
}

}  // namespace rille::device
