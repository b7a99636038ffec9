#include "runtime/workflow/transfer/stage_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "runtime/core/store/beneath.hpp"

namespace rille::transfer {

namespace {

constexpr std::size_t files_max = 1'000'000;
constexpr std::size_t row_bytes = 200;  // of a planned file without its key

// Bytes that are not UTF-8 stand alone or with the character before.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && !begins_character(text[end])) ++end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

struct Piece {  // of a pattern
  enum class Kind { literal, one, name, any, folders } kind = Kind::literal;
  std::string_view text;  // of a literal
};

std::vector<Piece> pieces_of(std::string_view pattern) {
  std::vector<Piece> out;
  const std::vector<std::string_view> all = characters(pattern);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == "?") out.push_back({Piece::Kind::one, {}});
    else if (all[i] != "*") out.push_back({Piece::Kind::literal, all[i]});
    else if (i + 1 == all.size() || all[i + 1] != "*") out.push_back({Piece::Kind::name, {}});
    else {
      const bool begins_name = i == 0 || all[i - 1] == "/";
      while (i + 1 < all.size() && all[i + 1] == "*") ++i;
      const bool folders = begins_name && i + 1 < all.size() && all[i + 1] == "/";
      out.push_back({folders ? Piece::Kind::folders : Piece::Kind::any, {}});
      if (folders) ++i;
    }
  }
  return out;
}

// Follows all ways through the pattern at once, so that no key makes it slow.
class Ways {
 public:
  explicit Ways(std::string_view pattern) : pieces_(pieces_of(pattern)), seen_(pieces_.size() + 1) {}
  bool lead_to(std::string_view key) {
    at_.clear();
    ++turn_;
    reach(at_, 0);
    for (std::size_t i = 0; i < key.size() && !at_.empty();) {
      std::size_t end = i + 1;
      while (end < key.size() && !begins_character(key[end])) ++end;
      take(key.substr(i, end - i));
      i = end;
    }
    return std::find(at_.begin(), at_.end(), pieces_.size()) != at_.end();
  }

 private:
  void take(std::string_view character) {
    next_.clear();
    ++turn_;
    for (const std::size_t i : at_)
      if (i < pieces_.size()) step(i, character);
    at_.swap(next_);
  }
  void step(std::size_t i, std::string_view character) {
    const Piece& piece = pieces_[i];
    const bool slash = character == "/";
    switch (piece.kind) {
      case Piece::Kind::literal:
        if (piece.text == character) reach(next_, i + 1);
        break;
      case Piece::Kind::one:
        if (!slash) reach(next_, i + 1);
        break;
      case Piece::Kind::name:
        if (!slash) reach(next_, i);
        break;
      case Piece::Kind::any: reach(next_, i); break;
      case Piece::Kind::folders:  // goes on only behind a whole name
        add(next_, i);
        if (slash) reach(next_, i + 1);
        break;
    }
  }
  // Pieces that may stand for nothing are passed at once.
  void reach(std::vector<std::size_t>& ways, std::size_t i) {
    for (;; ++i) {
      add(ways, i);
      if (i == pieces_.size()) return;
      const Piece::Kind kind = pieces_[i].kind;
      if (kind == Piece::Kind::literal || kind == Piece::Kind::one) return;
    }
  }
  void add(std::vector<std::size_t>& ways, std::size_t i) {
    if (std::exchange(seen_[i], turn_) != turn_) ways.push_back(i);
  }

  std::vector<Piece> pieces_;
  std::vector<std::size_t> at_, next_;  // the pieces that may come next
  std::vector<std::uint64_t> seen_;     // in which turn each was added
  std::uint64_t turn_ = 0;
};

Error not_below(const std::string& address, const std::string& why) {
  return make_error(ErrorKind::invalid, fmt::format("{} cannot be a file below a folder: {}", address, why),
                    "take objects with such keys one by one, each to a name of its own");
}

Error none_of(const objects::ObjectStore& store, const std::string& key) {
  const bool below = key.empty() || key.ends_with('/');
  Error e =
      make_error(ErrorKind::state,
                 is_pattern(key) ? fmt::format("no object matches {}", store.address(key))
                 : below         ? fmt::format("there is no object below {}", store.address(key))
                                 : fmt::format("there is no object {}, and none below it", store.address(key)),
                 below && !key.empty()
                     ? "check the address: upper and lower case differ, and without the \"/\" at its end it means "
                       "one object"
                     : "check the address: upper and lower case differ");
  e.http_status = 404;
  return e;
}

// Adds the objects of a list that match; pattern "": all.
Async<> list_files(objects::ObjectStore& store, std::string prefix, std::string pattern,
                   std::shared_ptr<MemoryUse> memory, FoundObjects& out, CancelToken token) {
  Ways ways(pattern);
  const std::function<Result<>(const objects::ListPage&)> each = [&](const objects::ListPage& page) -> Result<> {
    std::size_t bytes = 0;
    for (const objects::ObjectInfo& info : page.objects) {
      if (is_folder_mark(info) || (!pattern.empty() && !ways.lead_to(info.key))) continue;
      if (!info.key.starts_with(prefix))
        return make_error(
            ErrorKind::integrity,
            fmt::format("the store lists {}, which does not begin with '{}'", store.address(info.key), prefix),
            "no store should answer so: check its endpoint");
      PlannedFile& file = out.files.emplace_back();
      file.key = info.key;
      file.size_bytes = info.size_bytes;
      file.version = info.version;
      bytes += row_bytes + 2 * info.key.size() + info.version.size();
    }
    RILLE_TRY(MemoryHeld page_held,
              MemoryHeld::take(memory, MemoryUse::Part::results, static_cast<std::int64_t>(bytes)));
    out.held.push_back(std::move(page_held));
    if (out.files.size() <= files_max) return success();
    Error e = make_error(ErrorKind::quota, fmt::format("{} has more than {} objects", store.address(prefix), files_max),
                         "stage longer prefixes, one after the other, or fewer and larger files");
    e.code = "limit";
    return e;
  };
  objects::ListRequest request;
  request.prefix = prefix;
  co_return co_await objects::list_all(store, request, each, std::move(token));
}

Async<bool> has_objects_below(objects::ObjectStore& store, std::string key, CancelToken token) {
  objects::ListRequest request;
  request.prefix = key + "/";
  request.count_max = 1;
  const Result<objects::ListPage> page = co_await store.list(request, std::move(token));
  co_return page && !page->objects.empty();  // keys that may not list see nothing below
}

}  // namespace

bool is_pattern(std::string_view key) { return key.find_first_of("*?") != std::string_view::npos; }

std::string_view literal_prefix(std::string_view pattern) { return pattern.substr(0, pattern.find_first_of("*?")); }

bool matches(std::string_view pattern, std::string_view key) { return Ways(pattern).lead_to(key); }

bool is_folder_mark(const objects::ObjectInfo& info) { return info.key.ends_with('/') && info.size_bytes == 0; }

bool is_path_below(std::string_view key) { return store::check_relative(key).ok(); }

Result<> place_files(std::vector<PlannedFile>& files, std::size_t cut, const std::string& root) {
  std::unordered_set<std::string_view> taken;
  for (PlannedFile& file : files) {
    file.path = file.key.substr(std::min(cut, file.key.size()));
    if (!is_path_below(file.path))
      return not_below(root + file.key, "a part of the path is empty, \".\", \"..\" or longer than 255 bytes");
  }
  for (const PlannedFile& file : files)
    if (!taken.insert(file.path).second) return not_below(root + file.key, "the store lists it twice");
  for (const PlannedFile& file : files)
    for (std::size_t at = file.path.find('/'); at != std::string::npos; at = file.path.find('/', at + 1))
      if (taken.contains(std::string_view(file.path).substr(0, at)))
        return not_below(root + file.key,
                         fmt::format("{} is an object, too, and would have to be a folder",
                                     root + file.key.substr(0, file.key.size() - file.path.size() + at)));
  return success();
}

Async<FoundObjects> find_objects(objects::ObjectStore& store, std::string key, bool look_below,
                                 std::shared_ptr<MemoryUse> memory, CancelToken token) {
  FoundObjects out;
  const bool below = key.empty() || key.ends_with('/'), pattern = is_pattern(key);
  if (!below) {
    Result<objects::ObjectInfo> one = co_await store.head(key, token);
    if (one) {
      PlannedFile& file = out.files.emplace_back();
      file.key = key;
      file.size_bytes = one->size_bytes;
      file.version = one->version;
      if (look_below) { RILLE_CO_TRY(out.also_below, co_await has_objects_below(store, key, std::move(token))); }
      co_return out;
    }
    if (!objects::is_missing(one.error())) co_return std::move(one).error();
  }
  out.folder = true;
  std::string prefix = below ? key : key + "/", match;
  if (pattern) {
    prefix = literal_prefix(key);
    match = below ? key + "**" : key;
  }
  RILLE_CO_CHECK(co_await list_files(store, prefix, match, std::move(memory), out, std::move(token)));
  if (out.files.empty()) co_return none_of(store, key);
  const std::size_t cut = pattern ? prefix.rfind('/') + 1 : prefix.size();
  RILLE_CO_CHECK(place_files(out.files, cut, store.address("")));
  co_return out;
}

}  // namespace rille::transfer
