#include "runtime/compute/tensor/retrace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

namespace {

// Splits `key` at '|', except inside quoted strings.
std::vector<std::string> key_pieces(const std::string& key) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '|' && !quoted) {
      out.emplace_back();
      continue;
    }
    if (key[i] == '"') quoted = !quoted;
    out.back() += key[i];
    if (key[i] == '\\' && quoted && i + 1 < key.size()) out.back() += key[++i];
  }
  std::erase(out, std::string());
  return out;
}

constexpr std::string_view reads = "reads ";

bool is_setting(const std::string& piece) { return piece[0] != '"' && piece.find('=') != std::string::npos; }

Signature::Argument tensor_argument(const std::vector<Tensor>& inputs, std::size_t which) {
  const auto& impl = *inputs[which].impl();
  Signature::Argument a;
  a.dtype = impl.window.dtype;
  a.shape = impl.window.shape;
  a.strides = impl.window.strides;
  for (std::size_t j = 0; j < which && a.shares < 0; ++j) {
    if (inputs[j].impl()->storage != impl.storage) continue;
    a.shares = int(j);
    a.apart = impl.window.offset - inputs[j].impl()->window.offset;
  }
  return a;
}

std::string cut(std::string text) {
  if (text.size() > 40) text.replace(40, text.npos, "..");
  return text;
}

std::string told(const Signature::Argument& a) {
  return a.plain.empty() ? name_of(a.dtype) + to_string(a.shape) : cut(a.plain);
}

std::string value_of(const std::vector<std::string>& settings, const std::string& name) {
  for (const auto& s : settings)
    if (s.starts_with(name)) return s.substr(name.size());
  return "off";
}

void compare(const Signature::Argument& was, const Signature::Argument& is, std::size_t number,
             std::vector<Difference>& out) {
  const auto became = [&](Cause cause, const std::string& a, const std::string& b) {
    out.push_back({cause, fmt::format("argument {}: {} became {}", number, a, b)});
  };
  if (was.plain != is.plain) {
    const bool both = !was.plain.empty() && !is.plain.empty();
    return became(both ? Cause::plain : Cause::type, told(was), told(is));
  }
  if (!was.plain.empty()) return;
  if (was.shape != is.shape) return became(Cause::shape, told(was), told(is));
  if (was.dtype != is.dtype) return became(Cause::type, told(was), told(is));
  if (was.strides != is.strides) became(Cause::strides, "strides " + to_string(was.strides), to_string(is.strides));
  if (was.shares == is.shares && was.apart == is.apart) return;
  out.push_back({Cause::sharing, fmt::format("argument {}: {}", number,
                                             is.shares < 0 ? "it no longer shares memory with another argument"
                                                           : "where it shares memory with another argument changed")});
}

std::string name_in(const std::string& read) { return read.substr(0, read.find('=')); }

// Compares what the function read from outside: "name=value", or "name=kind #number" for a value compared by identity.
void compare(const std::vector<std::string>& was, const std::vector<std::string>& is, std::vector<Difference>& out) {
  const auto found = out.size();
  for (std::size_t i = 0; was != is && i < std::max(was.size(), is.size()); ++i) {
    if (i >= std::min(was.size(), is.size()) || name_in(was[i]) != name_in(is[i])) {
      if (out.size() == found) out.push_back({Cause::read, "it reads other variables by itself"});
      return;
    }
    if (was[i] == is[i]) continue;
    const auto name = name_in(is[i]), before = was[i].substr(name.size() + 1), now = is[i].substr(name.size() + 1);
    const auto kind = now.substr(0, now.find(" #"));
    const bool another = kind.size() < now.size() && now[0] != '"' && before.starts_with(kind + " #");
    out.push_back({Cause::read, fmt::format("'{}', which it reads by itself: {}", name,
                                            another ? "another " + kind : cut(before) + " became " + cut(now))});
  }
}

const char* way_out(Cause cause) {
  switch (cause) {
    case Cause::shape:
    case Cause::dropped: return "pad to one shape, or to a few (buckets)";
    case Cause::plain: return "pass a number that changes as a tensor of one element";
    case Cause::read: return "pass what changes as an argument, a number as a tensor of one element";
    case Cause::strides: return "pass it contiguous";
    case Cause::type: return "convert it before the call";
    case Cause::device: return "make one compiled function for each device";
    default: return "make one compiled function for each way of calling it";
  }
}

}  // namespace

Signature signature_of(const std::vector<Tensor>& inputs, const std::string& key, std::string part) {
  Signature s;
  s.part = std::move(part);
  const auto pieces = key_pieces(key);
  std::size_t next = 0;
  if (std::find(pieces.begin(), pieces.end(), "t") == pieces.end())
    while (next < inputs.size()) s.arguments.push_back(tensor_argument(inputs, next++));
  for (const auto& piece : pieces) {
    if (piece.starts_with(reads)) {
      s.reads.push_back(piece.substr(reads.size()));
      continue;
    }
    if (is_setting(piece)) {
      s.settings.push_back(piece);
      continue;
    }
    if (piece == "t" && next < inputs.size()) {
      s.arguments.push_back(tensor_argument(inputs, next++));
      continue;
    }
    s.arguments.emplace_back();
    s.arguments.back().plain = piece;
  }
  return s;
}

std::vector<Difference> differences(const Signature& before, const Signature& now) {
  std::vector<Difference> out;
  if (before.arguments.size() != now.arguments.size())
    out.push_back({Cause::count, fmt::format("{} arguments became {}", before.arguments.size(), now.arguments.size())});
  for (std::size_t i = 0; i < std::min(before.arguments.size(), now.arguments.size()); ++i)
    compare(before.arguments[i], now.arguments[i], i + 1, out);
  if (before.settings != now.settings) {
    for (const std::string name : {"autocast", "tf32", "no_grad"}) {
      const auto was = value_of(before.settings, name + "="), is = value_of(now.settings, name + "=");
      if (was != is) out.push_back({Cause::setting, fmt::format("{}: {} became {}", name, was, is)});
    }
    if (value_of(before.settings, "mode=") != value_of(now.settings, "mode="))
      out.push_back({Cause::setting, "a model went from train to eval mode, or back"});
  }
  compare(before.reads, now.reads, out);
  if (before.part != now.part)
    out.push_back({Cause::part, fmt::format("part of an accumulation: {} became {}", before.part, now.part)});
  return out;
}

void Retraces::add(const std::vector<Difference>& why) {
  ++count;
  std::string text;
  for (std::size_t i = 0; i < why.size() && i < 3; ++i) text += (i ? "; " : "") + why[i].text;
  if (why.size() > 3) text += fmt::format("; and {} more", why.size() - 3);
  latest.push_back({calls, text});
  if (latest.size() > kept) latest.pop_front();
  const auto avoidable = std::find_if(
      why.begin(), why.end(), [](const Difference& d) { return d.cause != Cause::part && d.cause != Cause::grad; });
  if (avoidable == why.end() || ++avoidable_ != warn_at) return;
  warning = fmt::format("recorded anew {} times in {} calls; the latest cause is {}: {}", count, calls, text,
                        way_out(avoidable->cause));
}

}  // namespace rille::tensor
