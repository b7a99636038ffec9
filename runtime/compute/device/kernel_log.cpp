// choose_kernel() and compile_error(): translates compilers' messages into lines of the user's script.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "runtime/compute/device/kernel_build.hpp"

namespace rille::device {

namespace {

constexpr std::size_t log_bytes_max = 4000;

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size())
    text.replace(at, what.size(), with);
}

bool plain_expression(std::string_view name) {
  return name.size() <= 500 && name.find_first_not_of(
                                   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
                                   ":<>, *&+-()'.") == name.npos;
}

struct Remark {
  std::string place, text;
};

// Reads "train.lua:12:7: error: text" or "train.lua(12): error: text"; false for any other line.
bool read_remark(std::string_view line, Remark& out) {
  for (const std::string_view mark : {": fatal error: ", ": error: ", ": catastrophic error: "}) {
    const auto at = line.find(mark);
    if (at == line.npos) continue;
    std::string_view place = line.substr(0, at);
    if (place.ends_with(')')) {
      const auto open = place.rfind('(');
      if (open == place.npos) return false;
      out.place = fmt::format("{}:{}", place.substr(0, open), place.substr(open + 1, place.size() - open - 2));
    } else {
      const auto column = place.rfind(':');
      out.place = std::string(place.substr(0, column == place.npos ? place.size() : column));
    }
    out.text = std::string(line.substr(at + mark.size()));
    return true;
  }
  return false;
}

// Refuses invalid kernel declarations and names their line: compilers would report a line of Rille's own headers.
Result<> check_declaration(const KernelDeclaration& k, const KernelOptions& options) {
  std::string what, hint;
  if (!k.returns.empty()) {
    what = fmt::format("it returns {}; a kernel returns nothing", k.returns);
    hint = fmt::format("__global__ void {}(..): results go through a pointer", k.name);
  }
  for (const auto& p : k.parameters) {
    if (!p.type.ends_with('&') && p.type.find("(&") == p.type.npos) continue;
    what = fmt::format("the parameter {} is a reference ({})", p.name.empty() ? "without a name" : p.name, p.type);
    hint = "a kernel takes values and pointers: its arguments are copied to the device";
  }
  if (what.empty()) return success();
  Error e = make_error(ErrorKind::invalid,
                       fmt::format("{}:{}: kernel {}: {}", options.file, options.line + k.line - 1, k.name, what),
                       std::move(hint));
  e.code = "kernel_compile";
  return e;
}

}  // namespace

Result<std::string> choose_kernel(const KernelSource& source, const KernelOptions& options) {
  std::string known;
  for (const auto& k : source.kernels) known += (known.empty() ? "" : ", ") + k.name;
  if (!options.name.empty()) {
    if (!plain_expression(options.name)) {
      return make_error(ErrorKind::invalid, fmt::format("\"{}\" cannot be the name of a kernel", options.name),
                        "pass a name, or a template with its arguments: \"scale<float, 4>\"");
    }
    const auto* k = source.find(options.name.substr(0, options.name.find('<')));
    if (k && k->is_template && options.name.find('<') == options.name.npos) {
      return make_error(ErrorKind::invalid, fmt::format("kernel {} is a template", k->name),
                        fmt::format("name its types: name = \"{}<float>\"", k->name));
    }
    if (k) {
      RILLE_CHECK(check_declaration(*k, options));
      return k->name + options.name.substr(std::min(options.name.find('<'), options.name.size()));
    }
    if (source.kernels.empty() || source.makes_kernels || options.name.find("::") != options.name.npos)
      return options.name;
    return make_error(ErrorKind::invalid, fmt::format("the source has no kernel {}", options.name), "it has: " + known);
  }
  if (source.kernels.empty()) {
    return make_error(ErrorKind::invalid, "the source has no kernel",
                      "a kernel is a function that begins with __global__ void; one that a macro makes needs name =");
  }
  if (source.kernels.size() > 1) {
    return make_error(ErrorKind::invalid, fmt::format("the source has {} kernels: {}", source.kernels.size(), known),
                      fmt::format("choose one: name = \"{}\"", source.kernels[0].name));
  }
  const auto& only = source.kernels[0];
  if (only.is_template) {
    return make_error(ErrorKind::invalid, fmt::format("kernel {} is a template", only.name),
                      fmt::format("name its types: name = \"{}<float>\"", only.name));
  }
  RILLE_CHECK(check_declaration(only, options));
  return only.name;
}

std::string line_mark(const KernelOptions& options) {
  std::string file;
  for (const char c : options.file) {
    if (c == '"' || c == '\\') file += '\\';
    if (c != '\n') file += c;
  }
  return fmt::format("#line {} \"{}\"\n", std::max(1, options.line), file);
}

namespace {

// Returns line n of a text, trimmed; the first line is 1.
std::string_view line_of(std::string_view text, int n) {
  while (n-- > 1) {
    const auto end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  const auto from = text.find_first_not_of(" \t\r");
  return from == text.npos ? std::string_view{} : text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

// Whether a line of the log is about the compiler's or the shim's headers: it does not help the user and is left out.
bool about_headers(std::string_view line) {
  return line.starts_with("In file included from ") || line.starts_with("                 from ") ||
         line.find("/shim-") != line.npos || line.find("the kernel's table") != line.npos ||
         line.starts_with("the constant ");
}

// Returns "train.lua:12" if the log contains "train.lua:12:7: note: to match this '{'".
std::optional<std::string> opened_at(std::string_view log) {
  const auto at = log.find(": note: to match this '{'");
  if (at == log.npos) return std::nullopt;
  const auto begin = log.rfind('\n', at) + 1;
  const auto place = log.substr(begin, at - begin);
  return std::string(place.substr(0, place.rfind(':')));
}

// Whether an error only follows from an earlier one: after an unknown parameter type compilers also report the kernel.
bool is_consequence(std::string_view text) {
  return text.find("declared void") != text.npos || text.find("does not apply here") != text.npos ||
         text.find("incomplete type \"void\"") != text.npos;
}

// Returns "train.lua:12", the script's line that includes a header in which an error lies: the first line of "In file
// included from /usr/include/curand.h:60,\n from train.lua:12:" that names the script.
std::string included_at(std::string_view log, std::string_view file) {
  for (std::size_t at = 0; at < log.size();) {
    const auto end = std::min(log.find('\n', at), log.size());
    std::string_view line = log.substr(at, end - at);
    at = end + 1;
    const auto from = line.find("from ");
    if (from == line.npos || line.find(": ") != line.npos) continue;
    line.remove_prefix(from + 5);
    while (line.ends_with(',') || line.ends_with(':')) line.remove_suffix(1);
    if (line.size() > file.size() && line.starts_with(file) && line[file.size()] == ':') return std::string(line);
  }
  return {};
}

// Returns the header named by a line #include <..>; "" for other lines.
std::string_view header_in(std::string_view line) {
  if (!line.starts_with('#') || line.find("include") == line.npos) return {};
  const auto open = line.find('<'), close = line.find('>');
  return open == line.npos || close <= open ? std::string_view{} : line.substr(open + 1, close - open - 1);
}

// Says what a kernel can use instead of a CUDA header that is meant for complete programs.
std::string_view instead_of(std::string_view header) {
  if (header.starts_with("curand"))
    return "random numbers come in a tensor: dev:rand{n}, dev:randn{n}; or from a generator in the source";
  if (header.starts_with("thrust/") || header.starts_with("cub/"))
    return "tensors have sort, argsort, topk, cumsum, sum, masked_select; blocks have shared memory and warp shuffles";
  return "";
}

// If the first error is at a line that Rille or NVRTC has added, returns the mistake in the user's source that causes
// it: a wrong kernel name, a wrong constant name, or an unclosed brace.
std::optional<Remark> mistake_at_generated_line(const Remark& first, const KernelOptions& options,
                                                const std::string& log) {
  constexpr std::string_view constant_place = "the constant ";
  const bool of_table = first.place.starts_with("the kernel's table") || first.place.starts_with("__nv_name_map");
  if (!of_table && !first.place.starts_with(constant_place)) return std::nullopt;
  const auto said = [&](std::string_view words) { return first.text.find(words) != first.text.npos; };
  Remark mistake{fmt::format("{}:{}", options.file, options.line), "the source makes no kernel of that name"};
  if (!of_table) {
    const auto end = first.place.rfind(':');
    mistake.text =
        "the source has no __constant__ " + first.place.substr(constant_place.size(), end - constant_place.size());
    if (const auto meant = first.text.find("; did you mean "); meant != first.text.npos)
      mistake.text += first.text.substr(meant);
  } else if (said("deduce 'auto'") || said("overloaded")) {
    mistake.text = "several functions have that name: give the kernel a name that no other function has";
  } else if (said("expected") || said("not allowed here")) {
    mistake.text = "a { in the kernel is not closed";
    mistake.place = opened_at(log).value_or(mistake.place);
  }
  return mistake;
}

}  // namespace

Error compile_error(const std::string& name, const KernelOptions& options, std::string_view text, std::string log) {
  replace_all(log, "‘", "'");
  replace_all(log, "’", "'");
  Remark first, one;
  int errors = 0;
  std::string hint;
  for (std::size_t at = 0; at < log.size();) {
    const auto end = std::min(log.find('\n', at), log.size());
    const auto line = std::string_view(log).substr(at, end - at);
    if (read_remark(line, one) && (++errors == 1 || (is_consequence(first.text) && !is_consequence(one.text))))
      first = one;
    if (!about_headers(line) && !line.empty()) hint += (hint.empty() ? "" : "\n") + std::string(line);
    at = end + 1;
  }
  if (const auto mistake = mistake_at_generated_line(first, options, log)) {
    first = *mistake;
    errors = 1;
  }
  std::string_view instead;
  const auto said_at = [&](const std::string& place) {  // the source's text at `place`, a position in the script
    return line_of(text, std::atoi(place.c_str() + options.file.size() + 1) - options.line + 1);
  };
  const auto colon_of = [](std::string_view place) { return std::min(place.rfind(':'), place.size()); };
  if (first.place.substr(0, colon_of(first.place)) != options.file) {
    if (const std::string place = included_at(log, options.file); !place.empty()) {
      const auto header = header_in(said_at(place));
      if (!header.empty()) {
        const auto begin = hint.find(first.place), end = std::min(hint.find('\n', begin), hint.size());
        hint = begin == hint.npos ? "" : hint.substr(begin, end - begin);
        first = {place, fmt::format("the header {} does not compile here, in {} places", header, errors)};
        errors = 1;
        instead = instead_of(header);
      }
    }
  } else if (first.text.ends_with("No such file or directory") || first.text.starts_with("cannot open source file")) {
    instead = instead_of(header_in(said_at(first.place)));
  }
  if (hint.size() > log_bytes_max) hint = hint.substr(0, log_bytes_max) + "\n...";
  const auto colon = first.place.rfind(':');
  if (colon != first.place.npos && first.place.substr(0, colon) == options.file)
    if (const auto said = said_at(first.place); !said.empty()) hint = fmt::format("{}\n{}", said, hint);
  if (!instead.empty()) hint = fmt::format("{}\n{}", instead, hint);
  for (const char* axis : {"x", "y", "z"}) {
    replace_all(hint, fmt::format("rille_at_{}", axis),
                fmt::format("blockIdx.{0} * blockDim.{0} + threadIdx.{0}", axis));
  }
  Error e = make_error(ErrorKind::invalid,
                       errors ? fmt::format("{}: kernel {}: {}{}", first.place, name, first.text,
                                            errors > 1 ? fmt::format(" (and {} more)", errors - 1) : "")
                              : fmt::format("{}:{}: kernel {} does not compile", options.file, options.line, name),
                       std::move(hint));
  e.code = "kernel_compile";
  return e;
}

}  // namespace rille::device
