// The journal on a disk that fails: power cuts with writes that were never synced and sectors that were torn, a full
// disk, and I/O errors. What was reported durable is there, in order and whole, or the journal says that it is damaged.
#include "runtime/core/store/journal.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fault/storage/faulty_disk.hpp"

using namespace rille;
using namespace rille::store;
using rille::test::FaultyDisk;

namespace {

int seeds(int by_default) {
  const char* many = std::getenv("RILLE_SEEDS");
  return many ? std::atoi(many) : std::getenv("RILLE_SEED") ? 1 : by_default;
}
int first_seed() {
  const char* one = std::getenv("RILLE_SEED");
  return one ? std::atoi(one) : 1;
}

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/dev/shm/rille-disk-XXXXXX", other[] = "/tmp/rille-disk-XXXXXX";
    const char* made = mkdtemp(name);
    path = made ? made : mkdtemp(other);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string journal() const { return path + "/journal.db"; }
};

Result<> add(Db& db, std::int64_t n, const std::string& filler) {
  return db.run("INSERT INTO blobs(rowid,sha256,content) VALUES(?,?,?)", {n, std::to_string(n), filler});
}

// Rows 1, 2, 3 .. are written, some together, until the disk says no. How many were reported durable; and how many
// were asked for.
struct Written {
  std::int64_t durable = 0, asked = 0;
  int refused = 0;
  std::vector<std::int64_t> acknowledged;
};

Written write_rows(Loop& loop, Journal& journal, std::mt19937& random, std::int64_t have, int groups) {
  Written w{have, have, 0, {}};
  for (int g = 0; g < groups; ++g) {
    int waiting = 1 + static_cast<int>(random() % 5);
    for (int i = 0, n = waiting; i < n; ++i) {
      std::int64_t row = ++w.asked;
      std::string filler(random() % 3000, 'x');
      journal.commit_then([row, filler](Db& db) { return add(db, row, filler); }, {},
                          [&, row](Result<> r) {
                            --waiting;
                            if (!r) return void(++w.refused);
                            w.durable = row;
                            w.acknowledged.push_back(row);
                          });
    }
    loop.run_until([&] { return waiting == 0; });
    if (w.refused) break;
    if (random() % 8 == 0 && !journal.flush()) ++w.refused;
  }
  return w;
}

std::vector<std::int64_t> rows(Journal& journal) {
  std::vector<std::int64_t> out;
  Result<> r = journal.reader().query("SELECT rowid FROM blobs ORDER BY rowid", {},
                                      [&](const Row& row) { out.push_back(row.integer(0)); });
  if (!r) FAIL(r.error().summary());
  return out;
}

void whole(Journal& journal) {
  std::string said;
  REQUIRE(journal.reader().query("PRAGMA integrity_check", {}, [&](const Row& row) { said += row.text(0); }).ok());
  CHECK(said == "ok");
}

}  // namespace

TEST_CASE("after a power cut all that was reported durable is there, and nothing is out of order") {
  int cuts = 0, lost = 0, whole_runs = 0, failed_opens = 0;
  for (int seed = first_seed(), end = seed + seeds(150); seed < end; ++seed) {
    INFO("RILLE_SEED=" << seed);
    FaultyDisk disk;
    Folder folder;
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    std::int64_t durable = 0;
    for (int life = 0; life < 4; ++life) {
      auto loop = Loop::create().value();
      if (life < 3) disk.fail_at(1 + static_cast<int>(random() % 120), FaultyDisk::Fault::power);
      auto opened = Journal::open(*loop, folder.journal());
      if (!opened) {  // the power failed while it was opened
        REQUIRE_FALSE(disk.powered());
        CHECK(opened.error().kind == ErrorKind::io);
        ++failed_opens;
        disk.settle(random());
        continue;
      }
      auto journal = std::move(opened).value();
      std::vector<std::int64_t> there = rows(*journal);
      REQUIRE(static_cast<std::int64_t>(there.size()) >= durable);
      for (std::size_t i = 0; i < there.size(); ++i) REQUIRE(there[i] == static_cast<std::int64_t>(i) + 1);
      whole(*journal);
      auto w = write_rows(*loop, *journal, random, static_cast<std::int64_t>(there.size()), 20);
      durable = w.durable;
      journal.reset();
      if (disk.powered()) ++whole_runs;
      else ++cuts, lost += w.asked > w.durable;
      disk.settle(random());
    }
  }
  if (seeds(150) < 100) return;
  CHECK(cuts > 10);
  CHECK(lost > 10);
  CHECK(whole_runs > 10);
  WARN(cuts << " power cuts, " << failed_opens << " of them while opening");
}

TEST_CASE("a full disk or an I/O error is reported, and what was reported durable stays") {
  int refusals = 0, recovered = 0;
  for (int seed = first_seed(), end = seed + seeds(150); seed < end; ++seed) {
    INFO("RILLE_SEED=" << seed);
    FaultyDisk disk;
    Folder folder;
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    auto fault = random() % 2 ? FaultyDisk::Fault::full : FaultyDisk::Fault::io_error;
    std::vector<std::int64_t> acknowledged;
    {
      auto loop = Loop::create().value();
      auto journal = Journal::open(*loop, folder.journal()).value();
      disk.fail_at(1 + static_cast<int>(random() % 100), fault, 1 + static_cast<int>(random() % 4));
      auto w = write_rows(*loop, *journal, random, 0, 30);
      acknowledged = w.acknowledged;
      refusals += w.refused > 0;
      if (w.refused) {  // the disk is well again: so is the journal, in the same process
        disk.heal();
        auto again = run_blocking(*loop, journal->commit([](Db& db) { return add(db, 1'000'000, "after"); }));
        if (again) ++recovered;
        else CHECK(again.error().kind == ErrorKind::io);
      }
    }
    disk.heal();
    auto loop = Loop::create().value();
    auto journal = Journal::open(*loop, folder.journal()).value();
    std::vector<std::int64_t> there = rows(*journal);
    for (std::int64_t n : acknowledged) REQUIRE(std::binary_search(there.begin(), there.end(), n));
    whole(*journal);
  }
  if (seeds(150) < 100) return;
  CHECK(refusals > 20);
  CHECK(recovered == refusals);
}

TEST_CASE("damage is refused with a message, or harmless") {
  int refused = 0, harmless = 0;
  for (int seed = first_seed(), end = seed + seeds(200); seed < end; ++seed) {
    INFO("RILLE_SEED=" << seed);
    Folder folder;
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    {
      auto loop = Loop::create().value();
      auto journal = Journal::open(*loop, folder.journal()).value();
      (void)write_rows(*loop, *journal, random, 0, 40);
    }
    {  // one connection that empties the log into the file
      auto db = Db::open(folder.journal(), false).value();
      db->shrink_log(0);
    }
    std::fstream file(folder.journal(), std::ios::in | std::ios::out | std::ios::binary);
    auto size = std::filesystem::file_size(folder.journal());
    for (int i = 0; i < 64; ++i) {
      file.seekp(static_cast<std::streamoff>(random() % size));
      file.put(static_cast<char>(random()));
    }
    if (random() % 4 == 0) std::filesystem::resize_file(folder.journal(), random() % size);
    file.close();
    auto loop = Loop::create().value();
    auto journal = Journal::open(*loop, folder.journal());
    Result<> checked = journal ? (*journal)->check() : Result<>(journal.error());
    if (checked) {
      ++harmless;
      rows(**journal);
      continue;
    }
    ++refused;
    INFO(checked.error().summary());
    CHECK((checked.error().kind == ErrorKind::integrity || checked.error().kind == ErrorKind::config));
    CHECK_FALSE(checked.error().hint.empty());
  }
  if (seeds(200) < 100) return;
  CHECK(refused > 20);
}
