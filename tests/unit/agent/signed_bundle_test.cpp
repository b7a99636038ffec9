// What of a bundle is executed on a machine: nothing, unless each file is as its manifest says, and a trusted key has
// signed the manifest.
#include "runtime/workflow/agent/signed_bundle.hpp"

#include "runtime/workflow/agent/install.hpp"
#include "tests/unit/agent/fixture.hpp"
#include "tests/unit/agent/test_bundle.hpp"

using namespace rille;
using namespace rille::agent;
namespace fs = std::filesystem;

namespace {

struct BareMachine : AgentFixture {
  std::string mark = temp.file("executed"), home = temp.file("home"), tools = temp.file("tools");
  TestBundle bundle{temp.file("bundle"), "build-1", mark};
  TestKey ours{'a'}, another{'b'};
  std::vector<ReleaseKey> trusted = parse_release_keys(ours.pem(), "ours").value();

  BareMachine() {
    fs::create_directories(home);
    fs::create_directories(tools);
  }
  // A program of the machine that comes before the system's.
  void tool(const std::string& name, const std::string& script) {
    fs::remove(tools + "/" + name);
    write(tools + "/" + name, "#!/bin/sh\n" + script + "\n");
    REQUIRE(::chmod((tools + "/" + name).c_str(), 0755) == 0);
  }
  // The machine has these programs and those of tool() only.
  void only(const std::vector<std::string>& programs) {
    for (const std::string& name : programs) {
      const std::string from = fs::exists("/usr/bin/" + name) ? "/usr/bin/" : "/bin/";
      fs::create_symlink(from + name, tools + "/" + name);
    }
    path = tools;
  }
  std::string path = tools + ":/usr/bin:/bin";

  Result<std::vector<std::string>> send(const std::string& archive, std::vector<ReleaseKey> keys) {
    InstallOptions options;
    options.identity = "build-1";
    options.archive = archive;
    options.keys = std::move(keys);
    options.cache = temp.file("cache");
    const ChannelSpec channel{{"env", "-u", "XDG_CACHE_HOME", "HOME=" + home, "PATH=" + path}, directory};
    return wait(install(*loop, channel, std::move(options)));
  }
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    const std::string cache = home + "/.cache/rille";
    if (fs::exists(cache))
      for (const auto& entry : fs::directory_iterator(cache)) out.push_back(entry.path().filename());
    return out;
  }
  // Refused for its content; nothing of it was executed, and nothing stays on the machine.
  Error refused(const Result<std::vector<std::string>>& words) {
    REQUIRE_FALSE(words.ok());
    INFO(words.error().summary());
    CHECK(words.error().kind == ErrorKind::integrity);
    CHECK(words.error().code == "not_installed");
    CHECK_FALSE(words.error().hint.empty());
    CHECK_FALSE(fs::exists(mark));
    CHECK(left() == std::vector<std::string>{});
    return words.error();
  }
  static bool says(const Error& error, const std::string& text) {
    INFO(error.message);
    return error.message.find(text) != std::string::npos;
  }
};

}  // namespace

TEST_CASE_METHOD(BareMachine, "without release keys a bundle needs no signature") {
  const auto words = send(bundle.pack(), {});
  if (!words) FAIL(words.error().summary());
  CHECK(words->front() == home + "/.cache/rille/build-1/bin/rille");
  CHECK(fs::exists(mark));
  CHECK(left() == std::vector<std::string>{"build-1"});
}

TEST_CASE_METHOD(BareMachine, "an installed bundle is executed if it is what the runner would send, else replaced") {
  const std::string archive = bundle.pack(), installed = home + "/.cache/rille/build-1", evil = temp.file("evil");
  REQUIRE(send(archive, {}).ok());
  bool anew = true;
  SECTION("it is") {
    write(installed + "/out.txt", "what a run has put there");
    anew = false;
  }
  SECTION("its program was altered") { write(installed + "/bin/rille", "#!/bin/sh\n: >" + evil + "\necho build-1\n"); }
  SECTION("its library was altered") { write(installed + "/lib/libstdc++.so.6", "another library"); }
  SECTION("a library was added") { write(installed + "/lib/libc.so.6", "another library"); }
  SECTION("its program was altered, and its manifest, so that they fit each other") {
    TestBundle other(temp.file("other"), "build-1", evil);
    fs::remove_all(installed);
    fs::copy(other.folder, installed, fs::copy_options::recursive);
  }
  tool("tar", "echo >>" + temp.file("unpacked") + "\nexec /usr/bin/env -i PATH=/usr/bin:/bin tar \"$@\"");
  const auto words = send(archive, {});
  if (!words) FAIL(words.error().summary());
  CHECK(words->front() == installed + "/bin/rille");
  CHECK_FALSE(fs::exists(evil));
  CHECK(fs::exists(temp.file("unpacked")) == anew);
  CHECK(read(installed + "/bin/rille") == bundle.read("bin/rille"));
  CHECK(fs::exists(installed + "/lib/libc.so.6") == false);
  CHECK(left() == std::vector<std::string>{"build-1"});
}

TEST_CASE_METHOD(BareMachine, "with release keys an installed bundle that none of them signed is not executed") {
  const std::string archive = bundle.pack();
  REQUIRE(send(archive, {}).ok());
  fs::remove(mark);
  const auto words = send(archive, trusted);
  REQUIRE_FALSE(words.ok());
  CHECK(words.error().kind == ErrorKind::integrity);
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE_METHOD(BareMachine, "a runner without a bundle executes what it has sent earlier, and nothing else") {
  const std::string archive = bundle.pack(), installed = home + "/.cache/rille/build-1",
                    none = temp.file("none.tar.gz");
  REQUIRE_FALSE(send(none, {}).ok());
  REQUIRE(send(archive, {}).ok());
  CHECK(send(none, {}).ok());
  fs::remove(mark);
  write(installed + "/bin/rille", bundle.read("bin/rille") + "\n");
  CHECK_FALSE(send(none, {}).ok());
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE_METHOD(BareMachine, "a bundle that a trusted key has signed is installed") {
  bundle.describe(&ours);
  SECTION("by the only key") {}
  SECTION("by the second of two") {
    trusted = parse_release_keys(another.pem() + ours.pem(), "both").value();
    REQUIRE(trusted.size() == 2);
  }
  SECTION("where there is no openssl") { tool("openssl", "exit 127"); }
  SECTION("where openssl does not know Ed25519") {
    tool("openssl", "echo 'pkeyutl: Option unknown option -rawin' >&2; exit 1");
  }
  const auto words = send(bundle.pack(), trusted);
  if (!words) FAIL(words.error().summary());
  CHECK(fs::exists(mark));
  CHECK(left() == std::vector<std::string>{"build-1"});
}

TEST_CASE_METHOD(BareMachine, "with release keys, a bundle that none of them signed is refused") {
  std::string why;
  SECTION("it has no signature") { why = "it is not signed"; }
  SECTION("another key signed it") {
    bundle.describe(&another);
    why = "signed by another key, " + another.id();
  }
  SECTION("its manifest was altered") {
    bundle.describe(&ours);
    bundle.write("MANIFEST.json", bundle.read("MANIFEST.json") + " ");
    why = "altered after the key " + ours.id() + " signed it";
  }
  SECTION("its signature was cut off") {
    bundle.describe(&ours);
    bundle.write("MANIFEST.sig", bundle.read("MANIFEST.sig").substr(0, 63));
    why = "altered after the key " + ours.id() + " signed it";
  }
  const Error error = refused(send(bundle.pack(), trusted));
  CHECK(says(error, why));
  CHECK(says(error, "'" + temp.file("bundle") + "/bundle.tar.gz'"));
  CHECK(says(error, "trusted release keys: " + ours.id()));
  CHECK(error.hint.find("RILLE_SIGNING_KEY") != std::string::npos);
  CHECK_FALSE(fs::exists(home + "/.cache"));  // nothing was sent
}

TEST_CASE_METHOD(BareMachine, "a bundle whose files differ from its manifest is refused") {
  const bool with_keys = GENERATE(true, false);
  bundle.describe(with_keys ? &ours : nullptr);
  std::string why;
  SECTION("one was altered") {
    bundle.write("bin/rille", bundle.read("bin/rille") + "# more\n");
    why = "bin/rille: FAILED";
  }
  SECTION("one is missing") {
    fs::remove(bundle.folder + "/docs/a page.md");
    why = "docs/a page.md: FAILED open or read";
  }
  SECTION("one was added, which the loader would prefer") {
    bundle.write("lib/glibc-hwcaps/x86-64-v3/libstdc++.so.6", "another library");
    why = "files that its manifest does not name";
  }
  SECTION("one is a link to a file of the machine with the same content") {
    fs::rename(bundle.folder + "/docs/a page.md", temp.file("page"));
    fs::create_symlink(temp.file("page"), bundle.folder + "/docs/a page.md");
    why = "./docs/a page.md is neither a file nor a folder";
  }
  CHECK(says(refused(send(bundle.pack(), with_keys ? trusted : std::vector<ReleaseKey>())), why));
}

TEST_CASE_METHOD(BareMachine, "an archive that is no whole bundle is refused before it is sent") {
  bundle.describe(&ours);
  const std::string archive = bundle.pack();
  SECTION("truncated") {
    fs::resize_file(archive, fs::file_size(archive) - 20);
    CHECK(says(refused(send(archive, trusted)), "is damaged"));
  }
  SECTION("another file") {
    write(archive, "no archive");
    CHECK(says(refused(send(archive, {})), "is damaged"));
  }
  SECTION("without a manifest") {
    fs::remove(bundle.folder + "/MANIFEST.json");
    CHECK(says(refused(send(bundle.pack(), {})), "has no MANIFEST.json"));
  }
  SECTION("its manifest names no files") {
    bundle.write("MANIFEST.json", "{}");
    CHECK(says(refused(send(bundle.pack(), {})), "names no files"));
  }
  CHECK_FALSE(fs::exists(home + "/.cache"));
}

TEST_CASE_METHOD(BareMachine, "what was changed on the way is refused by the machine") {
  bundle.describe(&ours);
  const std::string archive = bundle.pack(), real = "/usr/bin/env -i PATH=/usr/bin:/bin tar \"$@\"\n";
  SECTION("a file and the manifest, so that they fit each other") {
    bundle.write("bin/rille", bundle.read("bin/rille") + "# more\n");
    bundle.describe();
    tool("tar", real + "cp " + bundle.folder + "/MANIFEST.json " + home + "/.cache/rille/.new-*/rille-*/");
    CHECK(says(refused(send(archive, trusted)), "another one than the runner has read"));
  }
  SECTION("the signature") {
    tool("tar", real + "head -c 64 /dev/zero >$(echo " + home + "/.cache/rille/.new-*/rille-*)/MANIFEST.sig");
    CHECK(says(refused(send(archive, trusted)), "signature does not fit"));
  }
}

TEST_CASE_METHOD(BareMachine, "modes of the archive let no other user change what was checked") {
  using fs::perms;
  fs::permissions(bundle.folder + "/lib/libstdc++.so.6", perms::all | perms::set_uid);
  fs::permissions(bundle.folder + "/lib", perms::all);
  const auto words = send(bundle.pack(), {});
  if (!words) FAIL(words.error().summary());
  for (const char* part : {"/lib", "/lib/libstdc++.so.6"}) {
    const perms is = fs::status(home + "/.cache/rille/build-1" + part).permissions();
    CHECK((is & (perms::group_write | perms::others_write | perms::set_uid)) == perms::none);
  }
}

TEST_CASE_METHOD(BareMachine, "the error for a machine without sha256sum names the missing program") {
  only({"sh", "env", "id", "readlink", "find", "mkdir", "rm", "tar", "gzip", "sed", "chmod"});
  const auto words = send(bundle.pack(), {});
  REQUIRE_FALSE(words.ok());
  CHECK(words.error().kind == ErrorKind::config);
  CHECK(says(words.error(), "it has no sha256sum"));
  CHECK(words.error().code == "not_installed");
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE_METHOD(BareMachine, "release keys are lines of PEM files") {
  const auto both = parse_release_keys("# the release's\n" + ours.pem() + "\n \r\n" + another.pem(), "keys");
  REQUIRE(both.ok());
  REQUIRE(both->size() == 2);
  CHECK(ids_of(*both) == ours.id() + ", " + another.id());
  CHECK(parse_release_keys("", "keys")->empty());
  const std::string line = to_base64(ours.der());
  for (const std::string& bad : {std::string("no key"), line.substr(4), "A" + line.substr(1), line + "AAAA"}) {
    const auto none = parse_release_keys(ours.pem() + bad + "\n", "'file'");
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().kind == ErrorKind::config);
    CHECK(none.error().message == "line 4 of 'file' is not an Ed25519 public key");
  }
}

TEST_CASE_METHOD(BareMachine, "compiled-in keys and the keys in the user's file are trusted") {
  const std::string file = temp.file("release_keys"), first = to_base64(ours.der()), second = to_base64(another.der());
  const auto ids = [&](const std::string& built_in) {
    const auto keys = release_keys_of(built_in, file);
    return keys ? ids_of(*keys) : keys.error().message;
  };
  CHECK(ids("") == "");
  CHECK(ids(first + "," + second) == ours.id() + ", " + another.id());
  write(file, another.pem());
  CHECK(ids("") == another.id());
  CHECK(ids(first) == ours.id() + ", " + another.id());
  write(file, "no key\n");
  CHECK(ids(first) == "line 1 of '" + file + "' is not an Ed25519 public key");
  fs::remove(file);
  fs::create_directory(file);  // what cannot be read is not taken for a missing one
  CHECK(ids(first).find(file) != std::string::npos);
}

TEST_CASE_METHOD(BareMachine, "an unpacked bundle is compared with its manifest") {
  const BundleManifest manifest = manifest_in_folder(bundle.folder).value();
  bundle.write("out/of the user.txt", "what a run has put there");
  CHECK(check_files(manifest, bundle.folder).ok());
  std::string named;
  SECTION("a file was altered") { bundle.write(named = "docs/a page.md", "another page"); }
  SECTION("a file is missing") { fs::remove(bundle.folder + "/" + (named = "lib/libstdc++.so.6")); }
  SECTION("a library was added") { bundle.write(named = "lib/other/libc.so.6", "a library"); }
  const auto checked = check_files(manifest, bundle.folder);
  REQUIRE_FALSE(checked.ok());
  CHECK(checked.error().kind == ErrorKind::integrity);
  CHECK(says(checked.error(), named));
}
