#include "runtime/compute/device/kernel_directives.hpp"

namespace rille::device {

namespace {

enum class Holds { no, maybe, yes };

class DirectiveReader {
 public:
  DirectiveReader(std::string_view text, const std::vector<Token>& tokens) : text_(text), t_(tokens) {
    result_.aside.assign(tokens.size(), false);
  }

  Directives run() {
    for (std::size_t i = 0; i < t_.size();) {
      if (t_[i] == "#" && (i == 0 || ends_line(i))) {
        const std::size_t end = end_of_line(i);
        line(i + 1, end);
        i = end;
      } else {
        result_.aside[i] = dead();
        ++i;
      }
    }
    return std::move(result_);
  }

 private:
  struct Level {
    bool outer = false, dead = false;  // outer: the enclosing #if is not compiled; dead: nor is this branch
    Holds taken = Holds::no;           // whether an earlier branch of this #if is compiled
  };

  bool dead() const { return !levels_.empty() && levels_.back().dead; }

  // Whether a line ends before token i. A line that a backslash continues does not end.
  bool ends_line(std::size_t i) const {
    const std::size_t from = t_[i - 1].at + t_[i - 1].text.size();
    const auto gap = text_.substr(from, t_[i].at - from);
    for (auto at = gap.find('\n'); at != gap.npos; at = gap.find('\n', at + 1)) {
      const std::size_t back = at > 0 && gap[at - 1] == '\r' ? 2 : 1;
      if (at < back || gap[at - back] != '\\') return true;
    }
    return false;
  }

  std::size_t end_of_line(std::size_t i) const {
    do ++i;
    while (i < t_.size() && !ends_line(i));
    return i;
  }

  Holds condition(std::size_t from, std::size_t end) const {
    if (end != from + 1) return Holds::maybe;
    if (t_[from] == "0" || t_[from] == "false") return Holds::no;
    return t_[from] == "1" || t_[from] == "true" ? Holds::yes : Holds::maybe;
  }

  void branch(Holds holds) {
    Level& l = levels_.back();
    l.dead = l.outer || l.taken == Holds::yes || holds == Holds::no;
    if (holds > l.taken) l.taken = holds;
  }

  void line(std::size_t from, std::size_t end) {
    if (from >= end) return;
    const auto word = t_[from].text;
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      levels_.push_back({dead(), false, Holds::no});
      branch(word == "if" ? condition(from + 1, end) : Holds::maybe);
    } else if ((word == "elif" || word == "else") && !levels_.empty()) {
      branch(word == "elif" ? condition(from + 1, end) : Holds::yes);
    } else if (word == "endif" && !levels_.empty()) {
      levels_.pop_back();
    } else if (word == "define" && from + 1 < end) {
      for (std::size_t i = from; i < end; ++i) result_.aside[i] = true;
      if (!dead()) macro(from + 1, end);
    }
  }

  void macro(std::size_t name, std::size_t end) {
    bool global = false, is_c = false;
    for (std::size_t i = name + 1; i < end; ++i) {
      global = global || t_[i] == "__global__" || result_.find(t_[i].text);
      is_c = is_c || (t_[i] == "extern" && i + 1 < end && t_[i + 1].kind == Token::Kind::text);
    }
    if (!global) return;
    const bool parameters =
        name + 1 < end && t_[name + 1] == "(" && t_[name + 1].at == t_[name].at + t_[name].text.size();
    bool whole = parameters;  // the macro contains the kernel's name: #define ONE __global__ void one(float* x) {}
    for (std::size_t i = name + 1; i < end; ++i) whole = whole || t_[i] == "{";
    if (whole) result_.makes_kernels = true;
    else result_.global.push_back({t_[name].text, is_c});
  }

  std::string_view text_;
  const std::vector<Token>& t_;
  Directives result_;
  std::vector<Level> levels_;
};

}  // namespace

const Directives::Word* Directives::find(std::string_view name) const {
  for (const auto& w : global)
    if (w.name == name) return &w;
  return nullptr;
}

Directives directives_of(std::string_view text, const std::vector<Token>& tokens) {
  return DirectiveReader(text, tokens).run();
}

}  // namespace rille::device
