#include "runtime/core/store/apart.hpp"

#include <catch2/catch.hpp>
#include <thread>

using rille::store::Apart;

namespace {

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  return set;
}

// Runs on a thread of its own, since affinity is per thread.
template <class F>
void on_a_thread(F f) {
  std::thread(f).join();
}

}  // namespace

TEST_CASE("a thread leaves the processor of another, and may come back when that is over") {
  on_a_thread([] {
    const cpu_set_t before = allowed();
    if (CPU_COUNT(&before) < 2) return;
    Apart apart;
    int left = -1;  // the kernel may move it between the two calls
    for (int i = 0; i < 1000 && !apart; ++i) apart.from(left = sched_getcpu());
    REQUIRE(apart);
    const cpu_set_t now = allowed();
    CHECK(CPU_COUNT(&now) == CPU_COUNT(&before) - 1);
    CHECK_FALSE(CPU_ISSET(static_cast<std::size_t>(left), &now));
    CHECK(sched_getcpu() != left);
    apart.anywhere();
    CHECK_FALSE(apart);
    const cpu_set_t after = allowed();
    CHECK(CPU_EQUAL(&after, &before));
  });
}

TEST_CASE("it follows when the other thread comes to where it went") {
  on_a_thread([] {
    const cpu_set_t before = allowed();
    if (CPU_COUNT(&before) < 2) return;
    Apart apart;
    for (int i = 0; i < 1000 && !apart; ++i) apart.from(sched_getcpu());
    REQUIRE(apart);
    int second = -1;
    cpu_set_t now = allowed();
    for (int i = 0; i < 1000 && (second < 0 || CPU_ISSET(static_cast<std::size_t>(second), &now)); ++i) {
      apart.from(second = sched_getcpu());
      now = allowed();
    }
    CHECK_FALSE(CPU_ISSET(static_cast<std::size_t>(second), &now));
    CHECK(CPU_COUNT(&now) == CPU_COUNT(&before) - 1);  // it leaves one processor at a time
  });
}

TEST_CASE("a thread with one processor, or on another, stays as it is") {
  on_a_thread([] {
    Apart apart;
    apart.from(-1);
    CHECK_FALSE(apart);
    cpu_set_t one;
    CPU_ZERO(&one);
    const int here = sched_getcpu();
    CPU_SET(static_cast<std::size_t>(here), &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    apart.from(here + 1);
    CHECK_FALSE(apart);
    apart.from(here);
    CHECK_FALSE(apart);
    const cpu_set_t after = allowed();
    CHECK(CPU_EQUAL(&after, &one));
  });
}
