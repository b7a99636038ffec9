#include "runtime/compute/device/kernel_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/compute/device/kernel_directives.hpp"
#include "runtime/compute/device/kernel_token.hpp"

namespace rille::device {

namespace {

using Tokens = std::vector<Token>;

bool one_of(const Token& t, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), t.text) != list.end();
}

class KernelFinder {
 public:
  KernelFinder(std::string_view text, const Tokens& tokens)
      : text_(text), t_(tokens), directives_(directives_of(text, tokens)) {}

  Result<KernelSource> run() {
    for (std::size_t i = 0; i < t_.size(); ++i) {
      const bool aside = directives_.aside[i];
      if (t_[i] == "{" && !aside) scopes_.push_back(scope_of(i));
      else if (t_[i] == "}" && !aside && !scopes_.empty()) scopes_.pop_back();
      else if (!aside && begins_kernel(t_[i])) RILLE_CHECK(kernel(i));
      else if (t_[i] == "typedef" && !aside) own_type(i);
      else if (t_[i] == "__shared__" && !aside) i += shared(i);
      else if (const auto taken = position(i)) i += taken;
      else if (tells_threads_apart(i)) result_.flat = false;
    }
    out_ += text_.substr(copied_);
    result_.cpu_text = std::move(out_);
    result_.makes_kernels = directives_.makes_kernels;
    return std::move(result_);
  }

 private:
  // Whether token i makes the source not flat: it makes threads behave differently or wait, or includes other text.
  bool tells_threads_apart(std::size_t i) const {
    const Token& t = t_[i];
    if (!t.is_word()) return false;
    if (t == "include") return at(i + 1).kind == Token::Kind::text;
    return one_of(t, {"threadIdx", "blockIdx", "__syncthreads", "__syncwarp", "__activemask", "__shared__", "assert",
                      "__trap", "cooperative_groups", "printf"}) ||
           t.text.find("sync") != t.text.npos;
  }

  // Records a typedef of a name that the shim defines. CUDA defines it only in a header, so the source may use it for
  // another type.
  void own_type(std::size_t i) {
    while (i < t_.size() && !(t_[i] == ";") && !(t_[i] == "{")) ++i;
    if (i >= t_.size() || !(t_[i] == ";")) return;
    const Token& name = t_[i - 1];
    if (one_of(name, {"int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
                      "intptr_t", "uintptr_t", "uchar", "ushort", "uint", "ulong", "clock_t"}))
      result_.own_types.emplace_back(name.text);
  }

  bool begins_kernel(const Token& t) const { return t == "__global__" || directives_.find(t.text); }

  const Token& at(std::size_t i) const {
    static const Token nothing;
    return i < t_.size() ? t_[i] : nothing;
  }

  struct Scope {
    bool space = false;  // true: the scope is a namespace or extern "C", not a body
    std::string name;    // prefix for names in a namespace: "a::b::"
  };

  // The scope that the brace at i opens: `namespace a::b {`, `extern "C" {`, or another.
  Scope scope_of(std::size_t i) const {
    Scope s;
    for (std::size_t back = 1; back <= i && back < 12; ++back) {
      const Token& t = t_[i - back];
      const bool linkage = t.kind == Token::Kind::text && i >= back + 1 && t_[i - back - 1] == "extern";
      if (linkage || t == "namespace") return {true, linkage || s.name.empty() ? "" : s.name + "::"};
      if (!t.is_word() && !(t == "::")) return {};
      s.name.insert(0, t.text);
    }
    return {};
  }

  // The index of the bracket that closes the bracket at i; nullopt if none does.
  std::optional<std::size_t> close_of(std::size_t i, std::string_view open, std::string_view close) const {
    int depth = 0;
    for (; i < t_.size(); ++i) {
      if (t_[i] == open) ++depth;
      else if (t_[i] == close && --depth == 0) return i;
      else if (open == "<" && (t_[i] == ";" || t_[i] == "{")) return {};
    }
    return {};
  }

  Result<> kernel(std::size_t i) {
    std::string returns;
    for (std::size_t n = i + 1; n + 1 < t_.size() && n < i + 64; ++n) {
      if (t_[n] == ";" || t_[n] == "{") break;
      if (t_[n] == "*" || t_[n] == "&") returns += t_[n].text;
      if (!t_[n].is_word()) continue;
      if (t_[n + 1] == "<") {  // a template specialisation is not listed, only the template
        const auto end = close_of(n + 1, "<", ">");
        if (end && at(*end + 1) == "(") return success();
        continue;
      }
      if (!(t_[n + 1] == "(")) {
        if (!one_of(t_[n], {"static", "inline", "extern", "__forceinline__", "__noinline__", "__inline__", "const"}))
          returns += (returns.empty() ? "" : " ") + std::string(t_[n].text);
        continue;
      }
      const auto end = close_of(n + 1, "(", ")");
      if (!end) {
        return make_error(
            ErrorKind::invalid,
            fmt::format("line {}: the parameter list of {} has no closing parenthesis", t_[n].line, t_[n].text));
      }
      if (one_of(t_[n], {"__launch_bounds__", "__attribute__", "alignas", "__align__", "decltype", "__maxnreg__",
                         "__cluster_dims__", "declspec"})) {
        n = *end;
        continue;
      }
      add(i, n, *end, returns);
      return success();
    }
    return success();  // a macro names the kernel: it is not listed
  }

  void add(std::size_t start, std::size_t name, std::size_t end, const std::string& returns) {
    KernelDeclaration k;
    if (const auto type = parameter_of(returns);
        returns == "auto" || returns.ends_with('&') || type.pointer ||
        (type.element != rille_abi::other && type.element != rille_abi::nothing))
      k.returns = returns;
    if (const auto* macro = directives_.find(t_[start].text)) k.is_c = macro->is_c;
    for (const Scope& s : scopes_) k.name += s.name;
    k.name += t_[name].text;
    k.line = t_[name].line;
    k.has_body = at(end + 1) == "{";
    for (std::size_t back = start; back-- > 0;) {
      const Token& t = t_[back];
      if (t.kind == Token::Kind::text && back > 0 && t_[back - 1] == "extern") k.is_c = true;
      if (t == ">") k.is_template = follows_template(back);
      if (!one_of(t, {"static", "inline", "extern", "__forceinline__"}) && t.kind != Token::Kind::text) break;
    }
    parameters(k, name + 2, end);
    for (auto& known : result_.kernels) {
      if (known.name != k.name) continue;
      if (k.has_body && !known.has_body) known = std::move(k);
      return;
    }
    if (result_.kernels.size() < 1000) result_.kernels.push_back(std::move(k));
  }

  bool follows_template(std::size_t close) const {
    int depth = 0, round = 0;  // within parentheses (round != 0), `<` and `>` are comparisons
    for (std::size_t i = close + 1; i-- > 0;) {
      if (t_[i] == ")") ++round;
      else if (t_[i] == "(") --round;
      else if (round > 0) continue;
      else if (t_[i] == ">") ++depth;
      else if (t_[i] == "<" && --depth == 0) return i > 0 && t_[i - 1] == "template";
      else if (t_[i] == ";" || t_[i] == "}") return false;
    }
    return false;
  }

  void parameters(KernelDeclaration& k, std::size_t first, std::size_t end) const {
    int depth = 0;
    std::size_t from = first;
    for (std::size_t i = first; i <= end; ++i) {
      if (one_of(t_[i], {"(", "<", "[", "{"})) ++depth;
      const bool closes = one_of(t_[i], {")", ">", "]", "}"});
      if (i == end || (depth == 0 && t_[i] == ",")) {
        if (i > from && !(i == from + 1 && t_[from] == "void")) k.parameters.push_back(parameter(from, i));
        from = i + 1;
      } else if (closes && depth > 0) {
        --depth;
      }
    }
  }

  KernelParameter parameter(std::size_t from, std::size_t end) const {
    std::size_t last = from;  // the parameter's end, without a default value and array brackets
    while (last < end && !(t_[last] == "=") && !(t_[last] == "[")) ++last;
    KernelParameter p;
    const bool array = last < end && t_[last] == "[";
    const bool named = last >= from + 2 && t_[last - 1].is_word() && !(t_[last - 2] == "::") &&
                       !one_of(t_[last - 1], {"const", "volatile", "void", "bool", "char", "short", "int", "long",
                                              "float", "double", "signed", "unsigned", "__restrict__", "__restrict"});
    if (named) { p.name = t_[--last].text; }
    for (std::size_t i = from; i < last; ++i) {
      if (one_of(t_[i], {"__restrict__", "__restrict", "__grid_constant__"})) continue;
      const bool spaced = !p.type.empty() && t_[i].is_word() && i > from && (t_[i - 1].is_word() || t_[i - 1] == ">");
      p.type += (spaced ? " " : "") + std::string(t_[i].text);
    }
    if (array) p.type += "*";
    return p;
  }

  // Replaces the tokens from `from` to `to`, inclusive, by `with`, keeping the number of lines.
  void replace(std::size_t from, std::size_t to, const std::string& with) {
    const std::size_t end = t_[to].at + t_[to].text.size();
    out_ += text_.substr(copied_, t_[from].at - copied_);
    out_ += with;
    const auto old = text_.substr(t_[from].at, end - t_[from].at);
    out_.append(std::size_t(std::count(old.begin(), old.end(), '\n')), '\n');
    copied_ = end;
  }

  static bool aligns(const Token& t) { return one_of(t, {"__align__", "alignas", "__attribute__"}); }

  // Index of the first `extern` or `static` in the declaration that contains token i; i if there is none.
  std::size_t begin_of(std::size_t i) const {
    std::size_t begin = i;
    for (std::size_t n = i; n > 0 && i - n < 16 && !directives_.aside[n - 1]; --n) {
      if (t_[n - 1] == ")") {  // skips the brackets of: extern __align__(16) __shared__
        if (n < 4 || !(t_[n - 3] == "(") || !aligns(t_[n - 4])) break;
        n -= 3;
      }
      if (!t_[n - 1].is_word()) break;
      if (one_of(t_[n - 1], {"extern", "static"}) && t_[n - 1].at >= copied_) begin = n - 1;
    }
    return begin;
  }

  // Handles `__shared__` at i and returns how many further tokens it has consumed. The words may come in any order:
  // extern __shared__ [__align__(16)] float s[]; extern volatile __shared__ float s[]; static __shared__ float s[32];
  std::size_t shared(std::size_t i) {
    const std::size_t begin = begin_of(i);
    if (const std::size_t end = dynamic_shared(begin)) return end - i;
    result_.flat = false;
    const std::size_t fixed = t_[begin] == "static" ? begin : at(i + 1) == "static" ? i + 1 : i;
    if (fixed != i) replace(fixed, fixed, "");  // drops `static`, which is redundant with __shared__
    return fixed > i ? 1 : 0;
  }

  // Rewrites a declaration of dynamic shared memory; returns the index of its semicolon, 0 for other declarations.
  std::size_t dynamic_shared(std::size_t begin) {
    std::string type;
    bool outside = false;
    for (std::size_t n = begin; n < t_.size() && n < begin + 40; ++n) {
      if (aligns(t_[n]) && at(n + 1) == "(") {
        const auto end = close_of(n + 1, "(", ")");
        if (!end) return 0;
        n = *end;
      } else if (at(n + 1) == "[" && at(n + 2) == "]" && t_[n].is_word() && !type.empty()) {
        std::size_t end = n + 3;
        if (aligns(at(end)) && at(end + 1) == "(") end = close_of(end + 1, "(", ")").value_or(end) + 1;
        if (!outside || !(at(end) == ";")) return 0;
        replace(begin, end, shared_pointer(type, std::string(t_[n].text)));
        return end;
      } else if (t_[n] == "extern") {
        outside = true;
      } else if (!t_[n].is_word() && !one_of(t_[n], {"::", "<", ">", ",", "*"})) {
        return 0;
      } else if (!(t_[n] == "__shared__")) {
        type += (type.empty() ? "" : " ") + std::string(t_[n].text);
      }
    }
    return 0;
  }

  std::string shared_pointer(const std::string& type, const std::string& name) const {
    const bool outside = std::all_of(scopes_.begin(), scopes_.end(), [](const Scope& s) { return s.space; });
    if (!outside) return fmt::format("{0}* const {1} = ({0}*)rille_shared(); (void){1};", type, name);
    return fmt::format(
        "static __thread {0}* {1}; "
        "static rille_shared_name rille_name_{1}([](void* p) RILLE_UNWATCHED {{ {1} = ({0}*)p; }});",
        type, name);
  }

  // Replaces blockIdx.x * blockDim.x + threadIdx.x, in any of four orders; returns how many further tokens it consumed.
  std::size_t position(std::size_t i) {
    static constexpr std::array<std::array<std::string_view, 5>, 4> orders = {
        {{"blockIdx", "*", "blockDim", "+", "threadIdx"},
         {"blockDim", "*", "blockIdx", "+", "threadIdx"},
         {"threadIdx", "+", "blockIdx", "*", "blockDim"},
         {"threadIdx", "+", "blockDim", "*", "blockIdx"}}};
    if (i + 10 >= t_.size() || !t_[i].is_word()) return 0;
    const auto axis = t_[i + 2].text;
    if (axis != "x" && axis != "y" && axis != "z") return 0;
    // An operator that binds tighter than `+` would apply to a part of the sum, so the sum is not replaced. A ")"
    // before the sum may end a cast.
    if (i > 0 && one_of(t_[i - 1], {"-", "*", "/", "%", ")", ".", "->", "::", "~", "!", "&"})) return 0;
    if (one_of(at(i + 11), {"*", "/", "%", ".", "->", "["})) return 0;
    for (const auto& order : orders) {
      bool fits = true;
      for (std::size_t n = 0; n < 3 && fits; ++n) {
        fits = t_[i + 4 * n] == order[2 * n] && t_[i + 4 * n + 1] == "." && t_[i + 4 * n + 2] == axis &&
               (n == 2 || t_[i + 4 * n + 3] == order[2 * n + 1]);
      }
      if (!fits) continue;
      replace(i, i + 10, "rille_at_" + std::string(axis));
      return 10;
    }
    return 0;
  }

  std::string_view text_;
  const Tokens& t_;
  const Directives directives_;
  KernelSource result_;
  std::string out_;
  std::size_t copied_ = 0;
  std::vector<Scope> scopes_;  // the scopes of the open braces, the innermost last
};

}  // namespace

const KernelDeclaration* KernelSource::find(std::string_view name) const {
  const KernelDeclaration* found = nullptr;
  for (const auto& k : kernels) {
    if (k.name == name) return &k;
    const bool fits =
        k.name.ends_with(name) && std::string_view(k.name).substr(0, k.name.size() - name.size()).ends_with("::");
    if (fits && found) return nullptr;
    if (fits) found = &k;
  }
  return found;
}

Result<KernelSource> read_kernel_source(std::string_view text) {
  if (text.size() > kernel_source_bytes_max) {
    return make_error(
        ErrorKind::invalid,
        fmt::format("the kernel source has {} bytes; at most {} are allowed", text.size(), kernel_source_bytes_max),
        "split the source into several kernels");
  }
  if (const auto zero = text.find('\0'); zero != text.npos) {
    return make_error(ErrorKind::invalid, fmt::format("the kernel source has a zero byte at offset {}", zero),
                      "the source must be text: remove that byte");
  }
  RILLE_TRY(const auto tokens, tokens_of(text));
  return KernelFinder(text, tokens).run();
}

}  // namespace rille::device
