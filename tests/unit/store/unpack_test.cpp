// Archives are made by libarchive's writer, damaged by hand.
#include "runtime/core/store/unpack.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "runtime/core/store/file.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::store;
namespace fs = std::filesystem;

namespace {

struct Entry {
  std::string name, content;
  unsigned type = AE_IFREG;
  int mode = 0644;
  std::string link = "", hard_link = "";
  std::int64_t told_bytes = -1;  // the size in the header; -1: the true one
};

using Choose = int (*)(struct archive*);

void pack(const std::string& path, const std::vector<Entry>& entries, Choose format = archive_write_set_format_pax,
          Choose filter = archive_write_add_filter_none) {
  struct archive* a = archive_write_new();
  REQUIRE(format(a) == ARCHIVE_OK);
  REQUIRE(filter(a) == ARCHIVE_OK);
  REQUIRE(archive_write_set_options(a, "hdrcharset=BINARY") <= ARCHIVE_OK);
  REQUIRE(archive_write_open_filename(a, path.c_str()) == ARCHIVE_OK);
  for (const Entry& entry : entries) {
    struct archive_entry* e = archive_entry_new();
    archive_entry_set_pathname(e, entry.name.c_str());
    archive_entry_set_filetype(e, entry.type);
    archive_entry_set_perm(e, static_cast<mode_t>(entry.mode));
    archive_entry_set_size(e,
                           entry.told_bytes < 0 ? static_cast<std::int64_t>(entry.content.size()) : entry.told_bytes);
    if (!entry.link.empty()) archive_entry_set_symlink(e, entry.link.c_str());
    if (!entry.hard_link.empty()) archive_entry_set_hardlink(e, entry.hard_link.c_str());
    CHECK(archive_write_header(a, e) >= ARCHIVE_WARN);
    archive_write_data(a, entry.content.data(), entry.content.size());
    archive_entry_free(e);
  }
  archive_write_free(a);  // a header that told of more bytes than there are: filled with zeros here
}

std::string noise(std::size_t size) {
  std::string out(size, '\0');
  std::uint64_t x = 88172645463325252ull;
  for (char& c : out) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    c = static_cast<char>(x);
  }
  return out;
}

struct Unpacking {
  TempDir temp;
  std::atomic<bool> stop{false};
  std::string folder = temp.file("outer/folder");
  Room room;

  Result<Unpacked> unpack(const std::string& name) { return store::unpack(temp.file(name), folder, stop, room); }
  Error refusal(const std::string& name) {
    auto r = unpack(name);
    REQUIRE_FALSE(r.ok());
    CHECK(nothing_outside());
    INFO(r.error().summary());
    CHECK(r.error().message.find('\n') == std::string::npos);
    return r.error();
  }
  std::string read(const std::string& name) { return read_file(folder + "/" + name).value(); }
  int mode(const std::string& name) { return static_cast<int>(fs::status(folder + "/" + name).permissions()); }
  bool nothing_outside() {
    std::set<std::string> names;
    if (fs::exists(temp.file("outer")))
      for (const auto& entry : fs::directory_iterator(temp.file("outer"))) names.insert(entry.path().filename());
    return names.empty() || names == std::set<std::string>{"folder"};
  }
  void damage(const std::string& name, const std::function<void(std::string&)>& change) {
    std::string bytes = read_file(temp.file(name)).value();
    change(bytes);
    REQUIRE(write_file_atomic(temp.file(name), bytes).ok());
  }
};

}  // namespace

TEST_CASE_METHOD(Unpacking, "every kind of archive gives the files that were packed") {
  const std::string big = noise((3 << 20) + 17);
  const std::vector<Entry> entries = {{"./", "", AE_IFDIR, 0755},
                                      {"./sub//empty/", "", AE_IFDIR, 0700},
                                      {"sub/big", big},
                                      {"./run.sh", "#!/bin/sh\n", AE_IFREG, 04711},
                                      {"none", ""},
                                      {"größe/日本.txt", "unicode"},
                                      {"sub/latin-\xe9", "no UTF-8"}};
  const std::vector<std::pair<Choose, Choose>> kinds = {
      {archive_write_set_format_pax, archive_write_add_filter_none},
      {archive_write_set_format_ustar, archive_write_add_filter_gzip},
      {archive_write_set_format_gnutar, archive_write_add_filter_bzip2},
      {archive_write_set_format_pax, archive_write_add_filter_xz},
      {archive_write_set_format_pax, archive_write_add_filter_zstd},
      {archive_write_set_format_pax, archive_write_add_filter_lz4},
      {archive_write_set_format_zip, archive_write_add_filter_none}};
  for (const auto& [format, filter] : kinds) {
    fs::remove_all(folder);
    pack(temp.file("a"), entries, format, filter);
    auto sum = unpack("a");
    if (!sum) FAIL(sum.error().summary());
    CHECK(sum->files == 5);
    CHECK(sum->size_bytes == static_cast<std::int64_t>(big.size()) + 10 + 7 + 8);
    CHECK(read("sub/big") == big);
    CHECK(read("none").empty());
    CHECK(read("größe/日本.txt") == "unicode");
    CHECK(read("sub/latin-\xe9") == "no UTF-8");
    CHECK(fs::is_directory(folder + "/sub/empty"));
    CHECK(mode("run.sh") == 0755);
    CHECK(mode("sub/big") == 0644);
  }
}

TEST_CASE_METHOD(Unpacking, "names of zip that are marked as UTF-8") {
  REQUIRE(std::system(("python3 -c \"import zipfile; zipfile.ZipFile('" + temp.file("a.zip") +
                       "', 'w').writestr('gr\\u00f6\\u00dfe/\\u65e5.txt', 'abc')\"")
                          .c_str()) == 0);
  REQUIRE(unpack("a.zip").ok());
  CHECK(read("größe/日.txt") == "abc");
}

TEST_CASE_METHOD(Unpacking, "one compressed file gets its name without the suffix") {
  pack(temp.file("words.txt.zst"), {{"x", "words"}}, archive_write_set_format_raw, archive_write_add_filter_zstd);
  CHECK(unpack("words.txt.zst").value().files == 1);
  CHECK(read("words.txt") == "words");
  pack(temp.file("two.gz"), {{"x", noise(700'000)}}, archive_write_set_format_raw, archive_write_add_filter_gzip);
  damage("two.gz", [](std::string& bytes) { bytes += bytes + std::string(512, '\0'); });
  REQUIRE(unpack("two.gz").ok());
  CHECK(read("two") == noise(700'000) + noise(700'000));
  fs::rename(temp.file("two.gz"), temp.file("two"));
  CHECK(refusal("two").kind == ErrorKind::invalid);
  fs::rename(temp.file("two"), temp.file("two.tar.gz"));
  CHECK(refusal("two.tar.gz").kind == ErrorKind::integrity);
}

TEST_CASE_METHOD(Unpacking, "names that lead out of the folder are refused") {
  for (const char* bad : {"../x", "a/../../x", "/tmp/rille-escaped", "..", "a/.."}) {
    INFO(bad);
    pack(temp.file("a.tar"), {{"good", "1"}, {bad, "2"}});
    CHECK(refusal("a.tar").kind == ErrorKind::integrity);
    pack(temp.file("a.zip"), {{bad, "2"}}, archive_write_set_format_zip);
    CHECK(refusal("a.zip").kind == ErrorKind::integrity);
    pack(temp.file("h.tar"), {{"good", "1"}, {"hard", "", AE_IFREG, 0644, "", bad}});
    CHECK(refusal("h.tar").kind == ErrorKind::integrity);
  }
  pack(temp.file("long.tar"), {{std::string(300, 'n'), "2"}});
  CHECK(refusal("long.tar").kind == ErrorKind::integrity);
  CHECK(read("good") == "1");
  CHECK_FALSE(fs::exists("/tmp/rille-escaped"));
}

TEST_CASE_METHOD(Unpacking, "links stay in the folder and are never followed") {
  pack(temp.file("a.tar"), {{"sub/file", "1"},
                            {"sub/up", "", AE_IFLNK, 0777, "../top"},
                            {"top", "2", AE_IFREG, 0755},
                            {"down", "", AE_IFLNK, 0777, "./sub/file"},
                            {"sub/hard", "", AE_IFREG, 0644, "", "./top"}});
  CHECK(unpack("a.tar").value().files == 5);
  CHECK(read("sub/up") == "2");
  CHECK(read("down") == "1");
  CHECK(read("sub/hard") == "2");
  CHECK(mode("sub/hard") == 0755);
  struct stat one {
  }, other{};
  REQUIRE(::stat((folder + "/top").c_str(), &one) == 0);
  REQUIRE(::stat((folder + "/sub/hard").c_str(), &other) == 0);
  CHECK(one.st_ino != other.st_ino);
  for (const char* bad : {"/etc/passwd", "..", "../x", "sub/../../x", "sub/..", "./../x"}) {
    INFO(bad);
    pack(temp.file("a.tar"), {{"link", "", AE_IFLNK, 0777, bad}, {"link/through", "3"}});
    CHECK(refusal("a.tar").kind == ErrorKind::integrity);
  }
  pack(temp.file("a.tar"), {{"link", "", AE_IFLNK, 0777, "sub"}, {"link/through", "3"}});
  CHECK(refusal("a.tar").kind == ErrorKind::integrity);
  CHECK_FALSE(fs::exists(folder + "/sub/through"));
  pack(temp.file("a.tar"), {{"hard", "", AE_IFREG, 0644, "", "down"}});  // to a link
  CHECK(refusal("a.tar").kind == ErrorKind::integrity);
  fs::create_directory_symlink(temp.path, folder + "/mine");  // one that was there before
  pack(temp.file("a.tar"), {{"mine/x", "3"}});
  CHECK(refusal("a.tar").kind == ErrorKind::integrity);
  CHECK_FALSE(fs::exists(temp.file("x")));
}

TEST_CASE_METHOD(Unpacking, "a later entry replaces files and links, and writes into neither") {
  REQUIRE(make_directories(folder).ok());
  REQUIRE(write_file_atomic(temp.file("shared"), "shared").ok());
  fs::create_hard_link(temp.file("shared"), folder + "/a");
  fs::create_symlink(temp.file("shared"), folder + "/b");
  pack(temp.file("a.tar"), {{"a", "1"}, {"a", "22"}, {"b", "3"}});
  CHECK(unpack("a.tar").ok());
  CHECK(read("a") == "22");
  CHECK(read("b") == "3");
  CHECK(read_file(temp.file("shared")).value() == "shared");
}

TEST_CASE_METHOD(Unpacking, "devices, pipes and encrypted files are refused by name") {
  for (unsigned type : {AE_IFCHR, AE_IFBLK, AE_IFIFO}) {
    pack(temp.file("a.tar"), {{"odd\nname", "", type}});
    const Error e = refusal("a.tar");
    CHECK(e.kind == ErrorKind::invalid);
    CHECK(e.message.find("odd?name") != std::string::npos);
  }
  pack(temp.file("a.zip"), {{"secret", "1"}}, [](struct archive* a) {
    archive_write_set_format_zip(a);
    archive_write_set_passphrase(a, "word");
    return archive_write_set_options(a, "zip:encryption=traditional");
  });
  CHECK(refusal("a.zip").message.find("'secret', which is encrypted") != std::string::npos);
}

TEST_CASE_METHOD(Unpacking, "what is no archive is told from one that is damaged") {
  for (const std::string& text : {std::string(), std::string("x"), std::string(5000, 'x')}) {
    REQUIRE(write_file_atomic(temp.file("a"), text).ok());
    const Error e = refusal("a");
    CHECK(e.kind == ErrorKind::invalid);
    CHECK(e.message.find(temp.file("a")) != std::string::npos);
    CHECK(e.hint.find("zip") != std::string::npos);
  }
  CHECK(refusal("missing").kind == ErrorKind::io);
  CHECK_FALSE(fs::exists(folder));
}

TEST_CASE_METHOD(Unpacking, "damaged archives are integrity errors") {
  const std::vector<Entry> entries = {{"big", noise(400'000)}, {"small", "x"}};
  struct Kind {
    const char* name;
    Choose format, filter;
  };
  for (const Kind& kind : {Kind{"a.tar.gz", archive_write_set_format_pax, archive_write_add_filter_gzip},
                           Kind{"a.tar.bz2", archive_write_set_format_pax, archive_write_add_filter_bzip2},
                           Kind{"a.tar.xz", archive_write_set_format_pax, archive_write_add_filter_xz},
                           Kind{"a.tar.lz4", archive_write_set_format_pax, archive_write_add_filter_lz4},
                           Kind{"a.zip", archive_write_set_format_zip, archive_write_add_filter_none}}) {
    INFO(kind.name);
    pack(temp.file(kind.name), entries, kind.format, kind.filter);
    damage(kind.name, [](std::string& bytes) { bytes[200'000] ^= 1; });
    CHECK(refusal(kind.name).kind == ErrorKind::integrity);
    for (const std::size_t missing : {std::size_t{100'000}, std::size_t{12}}) {
      INFO(missing);
      fs::remove_all(folder);
      pack(temp.file(kind.name), entries, kind.format, kind.filter);
      damage(kind.name, [&](std::string& bytes) { bytes.resize(bytes.size() - missing); });
      CHECK(refusal(kind.name).kind == ErrorKind::integrity);
      if (missing > 12) CHECK_FALSE(fs::exists(folder + "/big"));
    }
  }
  for (const std::size_t cut : {std::size_t{700}, std::size_t{300'000}}) {
    pack(temp.file("a.tar"), entries);
    damage("a.tar", [&](std::string& bytes) { bytes.resize(cut); });
    CHECK(refusal("a.tar").kind == ErrorKind::integrity);
  }
  pack(temp.file("a.tar"), entries);
  damage("a.tar", [](std::string& bytes) { bytes[100] ^= 1; });  // in the first header
  CHECK(refusal("a.tar").kind == ErrorKind::integrity);
  pack(temp.file("end.tar.gz"), entries, archive_write_set_format_pax, archive_write_add_filter_gzip);
  damage("end.tar.gz", [](std::string& bytes) { bytes[bytes.size() - 6] ^= 1; });  // the checksum at the end
  CHECK(refusal("end.tar.gz").kind == ErrorKind::integrity);
}

TEST_CASE_METHOD(Unpacking, "an archive of more than there is room for ends with an error") {
  std::int64_t left_bytes = 1 << 20;
  room = [&](std::int64_t bytes) -> Result<> {
    if (bytes > left_bytes) return make_error(ErrorKind::quota, "full");
    left_bytes -= bytes;
    return success();
  };
  const std::string zeros(32 << 20, '\0');
  for (const Choose format : {Choose{archive_write_set_format_zip}, Choose{archive_write_set_format_pax}}) {
    left_bytes = 1 << 20;
    pack(
        temp.file("bomb"), {{"small", "1"}, {"bomb", zeros}}, format,
        format == Choose{archive_write_set_format_zip} ? archive_write_add_filter_none : archive_write_add_filter_zstd);
    REQUIRE(fs::file_size(temp.file("bomb")) < 200'000);
    CHECK(refusal("bomb").message == "full");
    CHECK(read("small") == "1");
    CHECK_FALSE(fs::exists(folder + "/bomb"));
  }
  room = {};
  // A header that tells of 2^42 bytes: refused before anything is written.
  pack(temp.file("huge.tar"), {{"huge", ""}}, archive_write_set_format_ustar);
  damage("huge.tar", [](std::string& bytes) {
    bytes.replace(124, 12, std::string("\x80\0\0\0\0\0\x04\0\0\0\0\0", 12));
    unsigned sum = 8 * ' ';
    for (int i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0 : static_cast<unsigned char>(bytes[i]);
    std::snprintf(bytes.data() + 148, 8, "%06o", sum);
  });
  const Error e = refusal("huge.tar");
  CHECK(e.kind == ErrorKind::quota);
  CHECK(e.code == "disk_full");
}

TEST_CASE_METHOD(Unpacking, "unpacking ends when it is asked to") {
  pack(temp.file("a.tar"), {{"a", noise(1 << 20)}, {"b", "2"}});
  room = [&](std::int64_t) {
    stop = true;
    return success();
  };
  CHECK(refusal("a.tar").kind == ErrorKind::cancelled);
  CHECK(fs::is_empty(folder));
}

TEST_CASE_METHOD(Unpacking, "the room is asked for folders, also for those that no entry names") {
  std::int64_t asked_bytes = 0, most_bytes = 1 << 20;
  room = [&](std::int64_t bytes) -> Result<> {
    if (asked_bytes + bytes > most_bytes) return make_error(ErrorKind::quota, "full");
    asked_bytes += bytes;
    return success();
  };
  pack(temp.file("a.tar"), {{"a/", "", AE_IFDIR, 0755}, {"a/b/c/", "", AE_IFDIR, 0755}, {"d/e/f", ""}, {"d/g", ""}});
  REQUIRE(unpack("a.tar").ok());
  CHECK(asked_bytes == 5 * 4096);
  REQUIRE(unpack("a.tar").ok());  // they are there
  CHECK(asked_bytes == 5 * 4096);
  fs::remove_all(folder);
  asked_bytes = 0, most_bytes = 2 * 4096;
  CHECK(refusal("a.tar").message == "full");
  CHECK(fs::exists(folder + "/a/b"));
  CHECK_FALSE(fs::exists(folder + "/a/b/c"));
}

TEST_CASE_METHOD(Unpacking, "an unpack that waits for another one ends when it is asked to") {
  pack(temp.file("a.tar"), {{"a", "1"}});
  fs::create_directories(folder);
  Fd other(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  auto waiting = std::async(std::launch::async, [&] { return unpack("a.tar"); });
  const auto opened = [&] {  // by the test and by the unpack, whose next call asks for the lock
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += fs::read_symlink(entry.path(), gone) == folder;
    }
    return count == 2;
  };
  while (!opened() && waiting.wait_for(std::chrono::seconds(0)) != std::future_status::ready) std::this_thread::yield();
  stop = true;
  const bool ended = waiting.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  other = Fd();
  CHECK(ended);
  const auto unpacked = waiting.get();
  REQUIRE_FALSE(unpacked.ok());
  CHECK(unpacked.error().kind == ErrorKind::cancelled);
  CHECK(fs::is_empty(folder));
}

TEST_CASE_METHOD(Unpacking, "ten thousand files") {
  std::vector<Entry> entries;
  for (int i = 0; i < 10'000; ++i) entries.push_back({"d" + std::to_string(i % 97) + "/f" + std::to_string(i), "x"});
  for (const Choose format : {Choose{archive_write_set_format_pax}, Choose{archive_write_set_format_zip}}) {
    fs::remove_all(folder);
    pack(temp.file("a"), entries, format);
    CHECK(unpack("a").value().files == 10'000);
    CHECK(read("d8/f9999") == "x");
  }
}
