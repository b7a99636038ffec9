// Ownership of this machine's GPUs: claims that wait for an agent, and locks that end with it.
#include "runtime/core/store/gpu_claim.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace rille::store {

namespace {

constexpr std::int64_t now = 1'700'000'000'000'000;

struct Folder {
  std::string path = "/tmp/rille-gpus-XXXXXX";
  Folder() { REQUIRE(mkdtemp(path.data())); }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a GPU is claimed by one machine, until its agent has had the time to come") {
  const Folder folder;
  const GpuClaims claims(folder.path + "/locks");
  CHECK(claims.is_free("GPU-a", now));
  CHECK(claims.claim("GPU-a", "/one", now).value());
  CHECK(claims.claim("GPU-a", "/one", now).value());  // the same create call, repeated
  CHECK_FALSE(claims.is_free("GPU-a", now));
  CHECK_FALSE(claims.claim("GPU-a", "/two", now).value());
  CHECK(claims.is_free("GPU-b", now));
  CHECK(claims.is_free("GPU-a", now + gpu_claim_us));
  CHECK(claims.is_free("GPU-a", now - 2 * gpu_claim_us));  // the clock was set back
  CHECK(claims.claim("GPU-a", "/two", now + gpu_claim_us).value());
}

TEST_CASE("what was claimed and is not needed is given back, by its owner alone") {
  const Folder folder;
  const GpuClaims claims(folder.path);
  REQUIRE(claims.claim("GPU-a", "/one", now).value());
  claims.drop("GPU-a", "/two");
  CHECK_FALSE(claims.is_free("GPU-a", now));
  claims.drop("GPU-a", "/one");
  CHECK(claims.is_free("GPU-a", now));
}

TEST_CASE("an agent holds what its machine has claimed, as long as it lives") {
  const Folder folder;
  const GpuClaims claims(folder.path);
  REQUIRE(claims.claim("GPU-a", "/one", now).value());
  const auto refused = claims.hold("GPU-a", "/two", now);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::capacity);
  CHECK(refused.error().message.find("GPU-a is now used by another rented instance of this machine, /one") !=
        std::string::npos);
  {
    const auto held = claims.hold("GPU-a", "/one", now);
    REQUIRE(held);
    CHECK_FALSE(claims.is_free("GPU-a", now + 10 * gpu_claim_us));
    CHECK_FALSE(claims.claim("GPU-a", "/two", now + 10 * gpu_claim_us).value());
  }
  CHECK(claims.is_free("GPU-a", now));
  CHECK(claims.hold("GPU-a", "/one", now));  // restarted
}

TEST_CASE("the lock of a process that is killed is gone") {
  const Folder folder;
  const GpuClaims claims(folder.path);
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto held = claims.hold("GPU-a", "/one", now);
    [[maybe_unused]] const auto told = write(ready[1], held ? "y" : "n", 1);
    for (;;) pause();
  }
  char answer = 0;
  REQUIRE(read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  CHECK_FALSE(claims.is_free("GPU-a", now));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(claims.is_free("GPU-a", now));
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("a word that is no uuid touches no file") {
  const Folder folder;
  const GpuClaims claims(folder.path);
  for (const char* word : {"", "../x", ".hidden", "a/b"}) {
    CHECK_FALSE(claims.is_free(word, now));
    CHECK_FALSE(claims.claim(word, "/one", now));
  }
}

}  // namespace rille::store
