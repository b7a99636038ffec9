#include "runtime/core/store/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/store/limited_child.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::store;

TEST_CASE("an atomic write replaces the whole file and leaves nothing beside it") {
  TempDir dir;
  REQUIRE(write_file_atomic(dir.file("a"), "one").ok());
  REQUIRE(write_file_atomic(dir.file("a"), "twenty", 0600).ok());
  CHECK(read_file(dir.file("a")).value() == "twenty");
  CHECK(dir.entries() == 1);
  struct stat info {};
  REQUIRE(stat(dir.file("a").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("an uncommitted writer changes nothing") {
  TempDir dir;
  REQUIRE(write_file_atomic(dir.file("a"), "old").ok());
  {
    auto writer = FileWriter::create(dir.file("a"));
    REQUIRE(writer.ok());
    REQUIRE(writer->write("new").ok());
    CHECK(read_file(dir.file("a")).value() == "old");
  }
  CHECK(read_file(dir.file("a")).value() == "old");
  CHECK(dir.entries() == 1);
}

TEST_CASE("a full disk is an io error with the way out") {
  Fd full(::open("/dev/full", O_WRONLY));
  REQUIRE(full.valid());
  auto written = write_all(full.get(), "x", "/dev/full");
  REQUIRE(!written.ok());
  CHECK(written.error().kind == ErrorKind::io);
  CHECK(written.error().message.find("/dev/full") != std::string::npos);
  CHECK(written.error().hint.find("free some space") != std::string::npos);
}

TEST_CASE("a write that does not fit keeps the old file and removes the temporary one") {
  TempDir dir;
  REQUIRE(write_file_atomic(dir.file("a"), "old").ok());
  std::string big(100'000, 'x');
  int failed = in_child_with_file_limit(50'000, [&] {
    auto written = write_file_atomic(dir.file("a"), big);
    return !written.ok() && written.error().kind == ErrorKind::io ? 7 : 1;
  });
  CHECK(failed == 7);
  // Without preallocation the write itself fails.
  failed = in_child_with_file_limit(50'000, [&] {
    auto writer = FileWriter::create(dir.file("a"));
    return writer.ok() && !writer->write(big).ok() ? 7 : 1;
  });
  CHECK(failed == 7);
  CHECK(read_file(dir.file("a")).value() == "old");
}

TEST_CASE("reading names what is wrong") {
  TempDir dir;
  auto missing = read_file(dir.file("none"));
  REQUIRE(!missing.ok());
  CHECK(missing.error().message.find(dir.file("none")) != std::string::npos);
  CHECK(missing.error().code == "errno 2");
  CHECK(!read_file(dir.path).ok());
  REQUIRE(write_file_atomic(dir.file("a"), std::string(11, 'x')).ok());
  CHECK(read_file(dir.file("a"), 11).ok());
  auto large = read_file(dir.file("a"), 10);
  REQUIRE(!large.ok());
  CHECK(large.error().message.find("10 B") != std::string::npos);
  CHECK(read_file("/proc/self/stat").value().size() > 10);  // a file whose st_size is 0
}

TEST_CASE("a file of /proc/sys is read whole, though it answers one read only") {
  const auto id = read_file("/proc/sys/kernel/random/boot_id", 100);
  REQUIRE(id.ok());
  CHECK(id->size() == 37);  // a UUID and a newline
}

TEST_CASE("a mapped file gives the bytes, also after a move and when empty") {
  TempDir dir;
  REQUIRE(write_file_atomic(dir.file("a"), "hello").ok());
  REQUIRE(write_file_atomic(dir.file("empty"), "").ok());
  auto map = MappedFile::open(dir.file("a"));
  REQUIRE(map.ok());
  MappedFile moved = std::move(*map);
  CHECK(moved.view() == "hello");
  moved = std::move(MappedFile::open(dir.file("empty"))).value();
  CHECK(moved.view() == "");
  CHECK(!MappedFile::open(dir.path).ok());
}

TEST_CASE("directories are made and removed") {
  TempDir dir;
  REQUIRE(make_directories(dir.file("x/y/z")).ok());
  REQUIRE(make_directories(dir.file("x/y/z")).ok());
  REQUIRE(write_file_atomic(dir.file("x/f"), "1").ok());
  CHECK(!make_directories(dir.file("x/f")).ok());
  CHECK(!make_directories(dir.file("x/f/g")).ok());
  REQUIRE(remove_tree(dir.file("x")).ok());
  REQUIRE(remove_tree(dir.file("x")).ok());
  CHECK(dir.entries() == 0);
  CHECK(parent_path("a") == ".");
  CHECK(parent_path("/a/b") == "/a");
}
