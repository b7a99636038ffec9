#include "tests/fuzz/liar.hpp"

using namespace rille;
using namespace rille::agent;

namespace sessions {

namespace {

const std::string stolen = "stolen";
const std::vector<std::string> leads_out = {"../escaped",
                                            "../../escaped",
                                            "../elsewhere/escaped",
                                            "a/../../escaped",
                                            "sub/../../escaped",
                                            "link/escaped",
                                            "link",
                                            "/",
                                            "..",
                                            "../kept",
                                            "../target.x/../escaped"};
const std::vector<std::string> texts = {"",
                                        ".",
                                        "a//b",
                                        "a/./b",
                                        "a",
                                        "sub/b",
                                        "sub",
                                        "a/b",
                                        "~/x",
                                        "$HOME/x",
                                        std::string("a\0b", 3),
                                        "\x1b]52;c;eA==\x07",
                                        std::string(300, 'x'),
                                        std::string(5000, 'x'),
                                        "\xff\xfe",
                                        "\xed\xa0\x80",
                                        "done",
                                        "absent",
                                        "integrity",
                                        "internal",
                                        std::string(64, 'a'),
                                        std::string(64, '/')};

std::string big_content() {
  std::string out;
  while (out.size() < 1'300'000) out += std::to_string(out.size()) + "\n";
  return out;
}

std::string little_endian(std::size_t n) {
  std::string out;
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((n >> shift) & 255);
  return out;
}

Frame response(const Value& id, Value value, std::string body = {}) {
  Frame out;
  out.type = FrameType::response;
  out.header.set("id", id).set("value", std::move(value));
  out.body = std::move(body);
  return out;
}

Frame event(const Value& id, const char* what, Value value, std::string body = {}) {
  Frame out;
  out.type = FrameType::event;
  out.header.set("id", id).set("event", what).set("value", std::move(value));
  out.body = std::move(body);
  return out;
}

}  // namespace

const std::map<std::string, std::string>& Liar::files() {
  static const std::map<std::string, std::string> all{{"a", "stolen"}, {"big", big_content()}, {"sub/b", ""}};
  return all;
}

Liar::Liar(Loop& loop, Dice& dice, double rate, std::string escape, std::function<void()> hush)
    : loop_(loop), dice_(dice), rate_(rate), tempting_(leads_out), texts_(texts), hush_(std::move(hush)) {
  tempting_.push_back(escape);
  texts_.insert(texts_.end(), tempting_.begin(), tempting_.end());
}

Value Liar::describe(const std::string& path, const std::string& content) {
  const std::string digest = store::fingerprint(content, true).sha256;
  digests_.insert(digest);
  Value out;
  out.set("path", path).set("size", static_cast<std::int64_t>(content.size())).set("mode", 0640);
  return out.set("sha256", digest).set("modified_wall_us", 1.7e15);
}

Value Liar::listing_of() const {
  Value::Array entries;
  for (const auto& [path, content] : files()) {
    if (path == "sub/b") entries.push_back(Value().set("path", "sub").set("directory", true));
    entries.push_back(Value().set("path", path).set("size", static_cast<std::int64_t>(content.size())));
  }
  return Value().set("entries", std::move(entries));
}

std::string Liar::honest(const Frame& frame) {
  const Result<std::string> bytes = encode_frame(frame);
  return bytes ? *bytes : std::string();  // too large for a frame
}

// The answer of an honest agent. A name that only a lie has announced has a file, too.
std::vector<Frame> Liar::answers_to(const Frame& request) {
  const Value& id = request.header["id"];
  const std::string op = request.header.text("op"), path = request.header.text("path");
  const auto known = files().find(path.starts_with("loot/") ? path.substr(5) : path);
  const std::string& content = known == files().end() ? stolen : known->second;
  if (op == "stat" && (path == "loot" || path == "loot/sub"))
    return {response(id, Value().set("path", path).set("directory", true).set("size", 0))};
  if (op == "stat") return {response(id, describe(path, content))};
  if (op == "list") return {response(id, listing_of())};
  if (op == "get") {
    const std::size_t offset = std::min(static_cast<std::size_t>(request.header.integer("offset")), content.size());
    return {response(id, Value::Object{},
                     content.substr(offset, static_cast<std::size_t>(request.header.integer("length"))))};
  }
  if (op == "unpack") return {response(id, Value().set("files", 2).set("size", 12))};
  if (op == "put_begin")
    return {response(id, Value().set("offset", request.header.integer("size") > 3 && dice_.chance(0.3) ? 3 : 0))};
  if (op == "put") {
    const auto sent = static_cast<std::int64_t>(request.body.size());
    return {response(id, Value().set("offset", request.header.integer("offset") + sent))};
  }
  Value done = Value().set("state", "done").set("attempt", 1).set("outcome", Value().set("value", 7));
  if (op != "attach") return {response(id, op == "status" || op == "start" ? std::move(done) : Value(Value::Object{}))};
  Frame log = event(id, "log", Value(), "a line\n");
  log.header.set("offset", 0);
  Frame notice = event(id, "notice", Value());
  notice.header.set("deadline_wall_us", 1.8e15);
  Frame metrics = event(id, "metrics", Value(), "{\"at_us\":1,\"name\":\"loss\",\"step\":1,\"value\":2}\n");
  metrics.header.set("offset", 0);
  return {std::move(log),
          std::move(metrics),
          event(id, "progress", Value().set("step", 1)),
          event(id, "checkpoint", Value().set("step", 1).set("directory", "checkpoints/step-00000001")),
          std::move(notice),
          response(id, std::move(done))};
}

void Liar::change_field(Value& value) {
  Value::Object* const fields = value.as_object();
  if (!fields || fields->empty()) {
    value = strange(dice_, texts_);
    return;
  }
  auto at = std::next(fields->begin(), static_cast<std::ptrdiff_t>(dice_.below(fields->size())));
  if (at->second.as_object() && dice_.chance(0.7)) return change_field(at->second);
  if (dice_.chance(0.2)) fields->erase(at);
  else at->second = strange(dice_, texts_);
}

void Liar::change_listing(Value& value) {
  Value entries = value["entries"];
  if (!entries.as_array() || entries.as_array()->empty()) entries = listing_of()["entries"];
  Value::Array& all = *entries.as_array();
  switch (dice_.below(5)) {
    case 0: all.push_back(dice_.pick(all)); break;
    case 1:
      for (int i = 0; i < 3000; ++i) all.push_back(Value().set("path", std::to_string(i % 7)).set("directory", true));
      break;
    case 2: all.push_back(Value().set("path", dice_.pick(tempting_)).set("directory", true)); break;
    case 3: all.push_back(describe(dice_.pick(tempting_), stolen)); break;
    default: change_field(dice_.pick(all));
  }
  std::shuffle(all.begin(), all.end(), dice_.engine);
  value.set("entries", std::move(entries));
}

// A frame that is well-formed and untrue.
void Liar::change(Frame& frame) {
  Value value = frame.header["value"];
  const bool lists = value["entries"].as_array() != nullptr;
  switch (lists && dice_.chance(0.7) ? 0 : dice_.below(9)) {
    case 0: change_listing(value); break;
    case 1: value = strange(dice_, texts_); break;
    case 2: frame.body.resize(dice_.below(frame.body.size() + 10)); break;
    case 3: frame.body.append(dice_.bytes(dice_.below(2'000'000))); break;
    case 4:
      if (!frame.body.empty()) dice_.pick(frame.body) ^= 1;
      break;
    case 5:
      told_error_ = true;
      frame.header.set("error", strange(dice_, texts_));
      break;
    case 6:
      value.set("outcome", Value().set("error", strange(dice_, texts_)));
      told_error_ = true;
      break;
    default: change_field(value);
  }
  // A description that was changed is still what the client compares the content with.
  if (const std::string* digest = value["sha256"].as_string()) digests_.insert(*digest);
  frame.header.set("value", std::move(value));
}

// A frame of which the client may make nothing: it may have to wait for what never comes.
std::string Liar::damaged(Frame frame) {
  hush_();
  switch (dice_.below(10)) {
    case 0:
      change_field(frame.header);
      told_error_ = true;  // whatever `error` or `value` has become
      return honest(frame);
    case 1:
      frame.type = static_cast<FrameType>(1 + dice_.below(6));
      told_error_ = true;
      return honest(frame);
    case 2: {  // any type, any length of the header
      std::string bytes = honest(frame);
      bytes[4 + dice_.below(5)] = static_cast<char>(dice_.engine());
      return bytes;
    }
    case 3: return little_endian(dice_.engine() & 0xffffffff) + honest(frame).substr(4);
    case 4: return honest(frame).substr(0, dice_.below(60));
    case 5: {
      std::string header = dice_.chance(0.5) ? std::string(dice_.below(300), '[') : dice_.bytes(dice_.below(300));
      return little_endian(5 + header.size()) + '\3' + little_endian(header.size()) + header;
    }
    case 6: return dice_.bytes(dice_.below(200));
    case 7: return "";
    case 8: hangs_up_ = true; return dice_.chance(0.5) ? honest(frame).substr(0, 7) : honest(frame);
    default: {
      Frame last;
      last.type = FrameType::error;
      last.header.set("error", strange(dice_, texts_));
      told_error_ = true;
      return honest(last);
    }
  }
}

std::string Liar::flood() {
  std::string out;
  const std::size_t kind = dice_.below(4);
  Frame one;
  if (kind == 1) one = event(Value(dice_.below(9)), "log", strange(dice_, texts_), std::string(1000, 'x'));
  if (kind == 2) one = response(Value(dice_.below(9)), strange(dice_, texts_));
  if (kind == 3) one = event(Value(dice_.below(9)), "checkpoint", strange(dice_, texts_));
  if (kind == 2) hush_();  // an answer to a request that is not yet sent
  for (std::size_t n = 1 + dice_.below(400); n > 0; --n) out += honest(one);
  return out;
}

std::string Liar::words_for(const Frame& request) {
  std::string out;
  for (Frame& frame : answers_to(request)) {
    if (dice_.chance(rate_ / 4)) out += flood();
    if (!dice_.chance(rate_)) out += honest(frame);
    else if (dice_.chance(0.25)) out += damaged(std::move(frame));
    else change(frame), out += honest(frame);
    if (hangs_up_) break;
  }
  return out;
}

std::string Liar::greeting() {
  Frame hello;
  hello.type = FrameType::hello;
  hello.header.set("protocol", protocol_version).set("build", "test").set("id", "i-test").set("process", "p");
  if (!dice_.chance(rate_ / 3)) return honest(hello);
  if (dice_.chance(0.3)) return damaged(std::move(hello));
  change_field(hello.header);
  return honest(hello) + (dice_.chance(0.2) ? honest(hello) : "");
}

// What was sent, by the rules of the protocol: a hello, then responses and events, until an error frame. Pings may come
// at any time.
void Liar::note(std::string_view sent) {
  sent_.feed(sent);
  while (!over_) {
    const Result<std::optional<Frame>> next = sent_.next();
    if (next && !*next) return;
    const FrameType type = next ? (*next)->type : FrameType::request;
    if (type == FrameType::ping) continue;
    over_ = type == FrameType::error;
    const bool allowed =
        said_hello_ ? type == FrameType::response || type == FrameType::event : type == FrameType::hello;
    if (!over_ && !allowed) over_ = broke_protocol_ = true;
    said_hello_ = true;
  }
}

Task<void> Liar::serve(int in, int out) {
  const std::unique_ptr<Stream> from = std::move(Stream::adopt(loop_, in)).value();
  std::unique_ptr<Stream> to = std::move(Stream::adopt(loop_, out)).value();
  FrameParser parser;
  std::string block(64 << 10, '\0');
  bool greeted = false;
  for (;;) {
    const auto n = co_await from->read(block.data(), block.size());
    if (!n || *n == 0) co_return;
    parser.feed(std::string_view(block.data(), *n));
    for (Result<std::optional<Frame>> next = parser.next(); next && *next; next = parser.next()) {
      std::string words;
      if (!greeted) words = greeting();
      else if ((*next)->type == FrameType::request) words = words_for(**next);
      greeted = true;
      const std::size_t piece = dice_.chance(rate_ / 8) ? 1 + dice_.below(7) : words.size();
      const std::size_t cut = words.size() < 5000 ? piece : words.size();
      for (std::size_t at = 0; to && at < words.size(); at += cut)
        if (!(co_await to->write(std::string_view(words).substr(at, cut)))) to.reset();
        else note(std::string_view(words).substr(at, cut));
      if (hangs_up_) to.reset();
    }
  }
}

}  // namespace sessions
