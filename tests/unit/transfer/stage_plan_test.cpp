// What an address in a store means: patterns, places of keys, and what a list may not hold.
#include "runtime/workflow/transfer/stage_plan.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "runtime/core/loop/loop.hpp"

using namespace rille;
using namespace rille::transfer;

namespace {

// A store that only lists and heads.
class Shelf final : public objects::ObjectStore {
 public:
  std::map<std::string, std::int64_t> keys;
  int heads = 0, lists = 0;

  objects::Traits traits() const override { return {}; }
  std::string address(const std::string& key) const override { return "s3://b/" + key; }
  std::string server() const override { return "https://b.example.org"; }
  Async<objects::ListPage> list(objects::ListRequest request, CancelToken) override {
    ++lists;
    objects::ListPage page;
    for (auto it = keys.upper_bound(request.token); it != keys.end(); ++it) {
      if (!it->first.starts_with(request.prefix)) continue;
      if (page.objects.size() == 2) {  // small pages, so that there are several
        page.next_token = page.objects.back().key;
        break;
      }
      page.objects.push_back(info(it->first));
    }
    co_return page;
  }
  Async<objects::ObjectInfo> head(std::string key, CancelToken) override {
    ++heads;
    if (keys.contains(key)) co_return info(key);
    Error none = make_error(ErrorKind::state, "no such object");
    none.http_status = 404;
    co_return none;
  }
  Async<objects::ObjectInfo> get(std::string, objects::GetRequest, objects::Sink, CancelToken) override {
    co_return no();
  }
  Async<std::string> put(std::string, objects::Body, objects::PutRequest, CancelToken) override { co_return no(); }
  Async<std::string> begin_parts(std::string, std::string, CancelToken) override { co_return no(); }
  Async<objects::Part> put_part(std::string, std::string, int, objects::Body, CancelToken) override { co_return no(); }
  Async<std::string> complete_parts(std::string, std::string, std::vector<objects::Part>, objects::PutRequest,
                                    CancelToken) override {
    co_return no();
  }
  Async<> abort_parts(std::string, std::string, CancelToken) override { co_return no(); }
  Async<> remove(std::string, CancelToken) override { co_return no(); }
  Async<objects::Presigned> presign(objects::PresignRequest, CancelToken) override { co_return no(); }

 private:
  static Error no() { return make_error(ErrorKind::internal, "not asked here"); }
  objects::ObjectInfo info(const std::string& key) const {
    objects::ObjectInfo out;
    out.key = key;
    out.size_bytes = keys.at(key);
    out.version = "v-" + key;
    return out;
  }
};

Result<FoundObjects> find(Shelf& shelf, const std::string& key, bool look_below = false,
                          std::shared_ptr<MemoryUse> memory = {}) {
  auto loop = Loop::create().value();
  return run_blocking(*loop, find_objects(shelf, key, look_below, std::move(memory), CancelToken()));
}

std::vector<std::string> paths(const Result<FoundObjects>& found) {
  std::vector<std::string> out;
  REQUIRE(found.ok());
  for (const PlannedFile& file : found->files) out.push_back(file.path);
  return out;
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("stage plan: patterns") {
  CHECK(matches("a/*.bin", "a/x.bin"));
  CHECK(matches("a/*.bin", "a/.bin"));
  CHECK_FALSE(matches("a/*.bin", "a/b/x.bin"));
  CHECK_FALSE(matches("a/*.bin", "a/x.bin.old"));
  CHECK(matches("a/**.bin", "a/b/x.bin"));
  CHECK(matches("a/**/x", "a/x"));
  CHECK(matches("a/**/x", "a/b/c/x"));
  CHECK_FALSE(matches("a/**/x", "a/bx"));
  CHECK_FALSE(matches("a/**/x", "a/b/cx"));
  CHECK(matches("**", "a/b"));
  CHECK(matches("**/x", "x"));
  CHECK(matches("a**/x", "ab/c/x"));
  CHECK(matches("a?c", "abc"));
  CHECK(matches("a?c", "a中c"));
  CHECK_FALSE(matches("a?c", "a/c"));
  CHECK_FALSE(matches("a?c", "ac"));
  CHECK(matches("x[1]", "x[1]"));
  CHECK_FALSE(matches("", "a"));
  CHECK(literal_prefix("a/b*c?") == "a/b");
  // All ways are followed at once: a pattern that another method would try in 2^50 ways.
  std::string hard, key(1000, 'a');
  for (int i = 0; i < 50; ++i) hard += "*a";
  CHECK_FALSE(matches(hard + "b", key));
}

TEST_CASE("stage plan: an exact key is one object") {
  Shelf shelf;
  shelf.keys = {{"p", 1}, {"p/a", 2}, {"x*", 3}, {"xy", 4}};
  auto found = find(shelf, "p");
  CHECK(paths(found) == Paths{""});
  CHECK_FALSE(found->folder);
  CHECK(found->files[0].version == "v-p");
  CHECK(shelf.lists == 0);
  CHECK(find(shelf, "p", true)->also_below);
  found = find(shelf, "x*");
  CHECK_FALSE(found->folder);
  CHECK(found->files[0].key == "x*");
}

TEST_CASE("stage plan: prefixes and patterns are folders") {
  Shelf shelf;
  shelf.keys = {{"d/", 0}, {"d/a", 0}, {"d/deep/höhe", 5}, {"d/z.bin", 7}, {"data", 1}, {"e/z.bin", 1}};
  CHECK(paths(find(shelf, "d/")) == Paths{"a", "deep/höhe", "z.bin"});
  CHECK(shelf.heads == 0);
  const auto without_slash = find(shelf, "d");
  CHECK(without_slash->folder);
  CHECK(paths(without_slash) == Paths{"a", "deep/höhe", "z.bin"});
  CHECK(paths(find(shelf, "d/*.bin")) == Paths{"z.bin"});
  CHECK(paths(find(shelf, "?/z.bin")) == Paths{"d/z.bin", "e/z.bin"});
  CHECK(paths(find(shelf, "?/")) == Paths{"d/a", "d/deep/höhe", "d/z.bin", "e/z.bin"});
  CHECK(paths(find(shelf, "")).size() == 5);
}

TEST_CASE("stage plan: nothing is found") {
  Shelf shelf;
  shelf.keys = {{"p", 1}};
  for (const char* key : {"q", "q/", "p/", "q*", "P"}) {
    const auto found = find(shelf, key);
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().kind == ErrorKind::state);
    CHECK(found.error().http_status == 404);
    CHECK(found.error().message.find(std::string("s3://b/") + key) != std::string::npos);
  }
  CHECK(find(shelf, "p/").error().hint.find("without the \"/\"") != std::string::npos);
}

TEST_CASE("stage plan: keys that cannot be files below a folder are named") {
  const std::string zero = std::string("p/a\0b", 5);
  for (const std::string& key : {std::string("p/../evil"), std::string("p//x"), std::string("p/a/./b"),
                                 std::string("p/a/"), std::string("p/") + std::string(256, 'n'), zero}) {
    Shelf shelf;
    shelf.keys = {{"p/good", 1}, {key, 1}};
    const auto found = find(shelf, "p/");
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().kind == ErrorKind::invalid);
    CHECK(found.error().message.find(key) != std::string::npos);
  }
}

TEST_CASE("stage plan: a key that others need as a folder is named, whatever stands between them") {
  Shelf shelf;
  shelf.keys = {{"p/a", 1}, {"p/a-b", 1}, {"p/a.c", 1}, {"p/a/b/c", 1}};
  const auto found = find(shelf, "p/");
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().kind == ErrorKind::invalid);
  CHECK(found.error().message.find("s3://b/p/a/b/c") != std::string::npos);
  CHECK(found.error().message.find("s3://b/p/a is") != std::string::npos);
  shelf.keys.erase("p/a");
  CHECK(find(shelf, "p/").ok());
}

TEST_CASE("stage plan: the list counts as memory, as long as it is held") {
  Shelf shelf;
  for (int i = 0; i < 100; ++i) shelf.keys["p/" + std::to_string(i)] = 1;
  const auto small = std::make_shared<MemoryUse>(5'000), large = std::make_shared<MemoryUse>(1'000'000);
  CHECK(find(shelf, "p/", false, small).error().kind == ErrorKind::memory);
  {
    const auto found = find(shelf, "p/", false, large);
    CHECK(large->total_bytes() > 100 * 100);
  }
  CHECK(large->total_bytes() == 0);
}
