// Rille's object stores as a filter, for the contract of the stores (stores_test.py): a call as a line of JSON in, its
// answer as a line out, {"ok": ..} or {"error": ..}. The first call is `open`: url, settings (of providers.json).
// Bodies are made of a size and a seed and read piece by piece; a body in memory is `text`.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/loop/together.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/core/store/objects/object_store.hpp"
#include "runtime/core/store/objects/url.hpp"

using namespace rille;
using namespace rille::objects;

namespace {

constexpr std::int64_t shown_max = 64 << 10, wait_ms = 20;

struct Tool {
  Loop& loop;
  std::unique_ptr<ObjectStore> store;
  Value settings;
};

char made_byte(std::uint64_t at, std::uint64_t seed) { return static_cast<char>((at * 7 + (at >> 10) + seed) % 251); }

Body body_of(const Value& call) {
  Body body;
  body.text = call.text("text");
  if (call["size"].is_null()) return body;
  body.size_bytes = call.integer("size");
  body.read = [seed = static_cast<std::uint64_t>(call.integer("seed"))](std::uint64_t offset, char* out,
                                                                        std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) out[i] = made_byte(offset + i, seed);
    return success();
  };
  return body;
}

PutRequest put_request(const Value& call) {
  PutRequest out;
  out.if_absent = call.boolean("if_absent");
  out.if_match = call.text("if_match");
  out.content_type = call.text("content_type");
  return out;
}

Value info_value(const ObjectInfo& info) {
  Value out;
  out.set("key", info.key).set("size", info.size_bytes).set("version", info.version);
  out.set("modified_us", info.modified_wall_us).set("type", info.content_type);
  return out;
}

ListRequest list_request(const Value& call) {
  ListRequest out;
  out.prefix = call.text("prefix");
  out.delimiter = call.text("delimiter");
  out.token = call.text("token");
  out.count_max = static_cast<int>(call.integer("count_max", 1000));
  return out;
}

Value page_value(const ListPage& page) {
  Value::Array objects, prefixes;
  for (const ObjectInfo& info : page.objects) objects.push_back(info_value(info));
  for (const std::string& prefix : page.prefixes) prefixes.emplace_back(prefix);
  Value out;
  out.set("objects", std::move(objects)).set("prefixes", std::move(prefixes)).set("next", page.next_token);
  return out;
}

Async<Value> open(Tool& tool, Value call) {
  RILLE_CO_TRY(const ObjectUrl url, parse_object_url(call.text("url")));
  tool.settings = call["settings"];
  StoreSetup setup{tool.loop, tool.settings, {}};
  setup.wait_ms = wait_ms;
  setup.stall_timeout_ms = call.integer("stall_ms", 60'000);
  RILLE_CO_TRY(tool.store, open_store(url, setup));
  Value out;
  out.set("key", url.key).set("url", url.text());
  const Traits traits = tool.store->traits();
  out.set("puts_if_absent", traits.puts_if_absent).set("puts_if_match", traits.puts_if_match);
  out.set("completes_if_absent", traits.completes_if_absent).set("part_min", traits.part_bytes_min);
  co_return out;
}

Async<Value> list(Tool& tool, Value call) {
  Value out;
  Value::Array keys, prefixes;
  int pages = 0;
  const std::function<Result<>(const ListPage&)> each = [&](const ListPage& page) {
    ++pages;
    for (const ObjectInfo& info : page.objects) keys.emplace_back(info.key);
    for (const std::string& prefix : page.prefixes) prefixes.emplace_back(prefix);
    return success();
  };
  RILLE_CO_CHECK(co_await list_all(*tool.store, list_request(call), each, CancelToken()));
  out.set("keys", std::move(keys)).set("prefixes", std::move(prefixes)).set("pages", pages);
  co_return out;
}

Async<Value> page(Tool& tool, Value call) {
  RILLE_CO_TRY(const ListPage found, co_await tool.store->list(list_request(call), CancelToken()));
  co_return page_value(found);
}

Async<Value> head(Tool& tool, Value call) {
  RILLE_CO_TRY(const ObjectInfo info, co_await tool.store->head(call.text("key"), CancelToken()));
  co_return info_value(info);
}

Async<Value> get(Tool& tool, Value call) {
  GetRequest request;
  request.offset = call.integer("offset");
  request.length = call.integer("length", -1);
  request.if_match = call.text("if_match");
  std::string bytes;
  store::Hasher hasher(true);
  std::int64_t size = 0;
  const Sink sink = [&](std::string_view piece) {
    hasher.update(piece);
    size += static_cast<std::int64_t>(piece.size());
    if (size <= shown_max) bytes += piece;
    return success();
  };
  RILLE_CO_TRY(const ObjectInfo info, co_await tool.store->get(call.text("key"), request, sink, CancelToken()));
  Value out = info_value(info);
  out.set("bytes", size).set("sha256", hasher.finish().sha256).set("text", size <= shown_max ? bytes : "");
  co_return out;
}

Async<Value> put(Tool& tool, Value call) {
  RILLE_CO_TRY(const std::string version,
               co_await tool.store->put(call.text("key"), body_of(call), put_request(call), CancelToken()));
  co_return Value(version);
}

// Puts `count` small objects, some at a time.
Async<Value> fill(Tool& tool, Value call) {
  const std::int64_t count = call.integer("count"), at_once = 16;
  for (std::int64_t from = 0; from < count; from += at_once) {
    std::vector<Together<std::string>> all;
    for (std::int64_t i = from; i < std::min(count, from + at_once); ++i) {
      std::string number = std::to_string(i);
      std::string key = call.text("prefix") + std::string(5 - std::min<std::size_t>(5, number.size()), '0') + number;
      all.push_back({key, [&tool, key](CancelToken token) {
                       Body body;
                       body.text = "x";
                       return tool.store->put(key, body, PutRequest(), std::move(token));
                     }});
    }
    for (Result<std::string>& done : co_await together(tool.loop, std::move(all), 0, CancelToken()))
      RILLE_CO_CHECK(std::move(done));
  }
  co_return Value(count);
}

Async<Value> begin(Tool& tool, Value call) {
  RILLE_CO_TRY(const std::string upload,
               co_await tool.store->begin_parts(call.text("key"), call.text("content_type"), CancelToken()));
  co_return Value(upload);
}

Async<Value> part(Tool& tool, Value call) {
  RILLE_CO_TRY(const Part done,
               co_await tool.store->put_part(call.text("key"), call.text("upload"),
                                             static_cast<int>(call.integer("number")), body_of(call), CancelToken()));
  co_return Value().set("number", done.number).set("mark", done.mark).set("size", done.size_bytes);
}

Async<Value> complete(Tool& tool, Value call) {
  std::vector<Part> parts;
  if (const Value::Array* rows = call["parts"].as_array())
    for (const Value& row : *rows)
      parts.push_back({static_cast<int>(row.integer("number")), row.text("mark"), row.integer("size")});
  RILLE_CO_TRY(const std::string version,
               co_await tool.store->complete_parts(call.text("key"), call.text("upload"), std::move(parts),
                                                   put_request(call), CancelToken()));
  co_return Value(version);
}

Async<Value> drop(Tool& tool, Value call) {
  RILLE_CO_CHECK(co_await tool.store->abort_parts(call.text("key"), call.text("upload"), CancelToken()));
  co_return Value(true);
}

Async<Value> remove(Tool& tool, Value call) {
  RILLE_CO_CHECK(co_await tool.store->remove(call.text("key"), CancelToken()));
  co_return Value(true);
}

Async<Value> presign(Tool& tool, Value call) {
  PresignRequest request;
  request.method = call.text("method") == "put" ? Method::put : Method::get;
  request.key = call.text("key");
  request.version = call.text("version");
  request.expires_s = call.integer("expires_s", 600);
  request.upload = call.text("upload");
  request.part = static_cast<int>(call.integer("number"));
  RILLE_CO_TRY(const Presigned made, co_await tool.store->presign(request, CancelToken()));
  Value headers{Value::Object{}};
  for (const auto& [name, value] : made.headers) headers.set(name, value);
  co_return Value().set("url", made.url).set("headers", std::move(headers)).set("expires_us", made.expires_wall_us);
}

const std::map<std::string, Async<Value> (*)(Tool&, Value)> calls = {
    {"open", open},  {"list", list},     {"page", page},      {"head", head}, {"get", get},
    {"put", put},    {"fill", fill},     {"begin", begin},    {"part", part}, {"complete", complete},
    {"abort", drop}, {"remove", remove}, {"presign", presign}};

}  // namespace

int main() {
  const auto loop = Loop::create().value();
  Tool tool{*loop, nullptr, {}};
  for (std::string line; std::getline(std::cin, line);) {
    const Value call = Value::from_json(line).value();
    const Result<Value> answer = run_blocking(*loop, calls.at(call.text("call"))(tool, call));
    Value out;
    if (answer) out.set("ok", *answer);
    else out.set("error", error_to_value(answer.error()));
    std::cout << out.to_json() << std::endl;
  }
}
