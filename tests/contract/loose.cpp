// Disks that outlived their machine, or were made by a create that failed: they cost money, are listed under the
// machine's tag, are no machine, and are ended.
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct Loose : Fake {
  static inline const std::set<std::string> all{"aws", "alibaba", "tencent", "huawei", "azure", "gcp"};
  const bool here = all.contains(fake_name()) && variable("RILLE_FAKE_FILE", "").empty();  // not moto

  std::vector<Machine> listed(const std::string& tag) {
    const auto found = wait(provider->list(tag, {}));
    if (!found) FAIL(found.error().message);
    return *found;
  }
  // A machine disappears, and its disk does not.
  std::string strand(const CreateRequest& request) {
    const auto made = wait(provider->create(request, {}));
    if (!made) FAIL(made.error().message);
    until(made->id, MachineState::live);
    const Value id = Value().set("id", made->id.substr(made->id.find('/') + 1));
    control("strand", id);
    control("vanish", id);
    until(made->id, MachineState::gone);
    return made->id;
  }
};

}  // namespace

TEST_CASE_METHOD(Loose, "a disk that outlived its machine is listed under its tag, as no machine, and is ended") {
  if (!here) return;
  const CreateRequest request = order("loose"), other = order("other");
  const auto lives = wait(provider->create(other, {}));
  REQUIRE(lives);
  const std::string gone = strand(request);
  REQUIRE(listed(other.tag).size() == 1);  // the disk of one that lives is that machine's
  const std::vector<Machine> left = listed(request.tag);
  REQUIRE(left.size() == 1);
  CHECK(left[0].id != gone);
  CHECK(left[0].tag == request.tag);
  CHECK(left[0].state == MachineState::terminating);  // it is not taken for the machine
  CHECK_FALSE(is_free_left_over(left[0]));

  const std::unique_ptr<Provider> another = make();  // by a process that knows nothing
  const auto shown = wait(another->describe(left[0].id, {}));
  REQUIRE(shown);
  CHECK(shown->tag == request.tag);
  CHECK(shown->state == MachineState::terminating);
  REQUIRE(wait(another->terminate(left[0].id, {})));
  CHECK(wait(another->describe(left[0].id, {}))->state == MachineState::gone);
  REQUIRE(wait(another->terminate(left[0].id, {})));
  CHECK(listed(request.tag).empty());
  REQUIRE(wait(provider->terminate(lives->id, {})));
  until(lives->id, MachineState::gone);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Loose, "loose disks: all pages of them, and none of another home's") {
  if (!here) return;
  for (int n = 0; n < 3; ++n) strand(order("many" + std::to_string(n)));
  CreateRequest theirs = order("theirs");
  theirs.tag = "rille-ba9876543210-theirs-g1-x1900000000";
  strand(theirs);
  control("set", Value().set("page_size", 2));
  const std::vector<Machine> left = listed("rille-0123456789ab-");
  REQUIRE(left.size() == 3);
  for (const Machine& disk : left) REQUIRE(wait(provider->terminate(disk.id, {})));
  CHECK(listed("rille-0123456789ab-").empty());
  CHECK(alive() == 1);
  CHECK(listed(theirs.tag).size() == 1);
}

TEST_CASE_METHOD(Loose, "huawei: what a job that failed has made is found by the name of its server") {
  if (!here || fake_name() != "huawei") return;
  const CreateRequest request = order("failed");
  fault("capacity", "createServers", 1, Value().set("leaves", true));
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::capacity));
  const std::vector<Machine> left = listed(request.tag);
  REQUIRE(left.size() == 1);
  REQUIRE(wait(provider->terminate(left[0].id, {})));
  CHECK(listed(request.tag).empty());
  CHECK(alive() == 0);
}
