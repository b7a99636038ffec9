#include "runtime/workflow/provider/gpus.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/workflow/provider/gpu_facts.hpp"

namespace rille::provider {

namespace {

constexpr std::size_t name_max = 200;  // text beyond this is not part of a GPU's name

std::vector<std::string> words_of(std::string_view text) {
  text = text.substr(0, name_max);
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == ' ' || c == '-' || c == '_' || c == '/' || c == ',') {
      if (!out.back().empty()) out.emplace_back();
    } else {
      out.back() += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
  }
  if (out.back().empty()) out.pop_back();
  // Splits words: "RTX4090" becomes "RTX 4090", "H100SXM5" becomes "H100 SXM5".
  const auto cut = [&out](std::size_t i, std::size_t at) {
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(i) + 1, out[i].substr(at));
    out[i].resize(at);
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::string& word = out[i];
    if (word.size() > 4 && (word.starts_with("RTX") || word.starts_with("GTX"))) {
      cut(i, 3);
      continue;
    }
    for (const std::string_view end : {"SXM", "PCIE", "NVL"}) {
      const std::size_t at = word.rfind(end);
      if (at == std::string::npos || at == 0 || word[at - 1] < '0' || word[at - 1] > '9') continue;
      cut(i, at);
      break;
    }
  }
  // Splits a suffix after the number: "6000Ada" becomes "6000 Ada".
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t digits = out[i].find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos) continue;
    const std::string rest = out[i].substr(digits);
    if (rest == "ADA" || rest == "TI" || rest == "SUPER") cut(i, digits);
  }
  // The provider Vast writes "4080S" for "4080 SUPER".
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].size() != 5 || out[i].find_first_not_of("0123456789") != 4 || out[i][4] != 'S') continue;
    out[i].resize(4);
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(i) + 1, "SUPER");
  }
  // Memory sizes: "80G" becomes "80GB", and "80 GB" becomes one word.
  for (std::string& word : out)
    if (word.size() > 1 && word.back() == 'G' && word.find_first_not_of("0123456789") == word.size() - 1) word += 'B';
  for (std::size_t i = 1; i < out.size(); ++i) {
    const bool number = out[i - 1].find_first_not_of("0123456789") == std::string::npos;
    if (!number || (out[i] != "GB" && out[i] != "G" && out[i] != "GIB")) continue;
    out[i - 1] += "GB";
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

// Whether a word is only a vendor, product line, socket or memory type, which gpu_model() leaves out.
bool is_filler(const std::string& word) {
  constexpr std::string_view fillers[] = {"NVIDIA", "TESLA", "GEFORCE", "QUADRO", "SXM",    "SXM2",
                                          "SXM3",   "SXM4",  "SXM5",    "PCIE",   "NVL",    "HBM2",
                                          "HBM2E",  "HBM3",  "HBM3E",   "GPU",    "TENSOR", "CORE"};
  return std::find(std::begin(fillers), std::end(fillers), word) != std::end(fillers);
}

bool is_memory(const std::string& word) {
  return word.size() > 2 && word.ends_with("GB") && word.find_first_not_of("0123456789") == word.size() - 2;
}

// Whether `word` is the nominal size of that memory: an 80 GB card reports 79.65 GiB, a 141 GB card 143771 MiB.
bool is_size_of(const std::string& word, std::int64_t memory_bytes) {
  const double gb = number_at(word), bytes = static_cast<double>(memory_bytes);
  const auto near = [gb](double n) { return std::abs(n - gb) <= 0.06 * gb; };
  return memory_bytes > 0 && std::isfinite(gb) && (near(bytes / 1e9) || near(bytes / 1073741824.0));
}

}  // namespace

std::string gpu_model(std::string_view name) {
  std::string out;
  for (const std::string& word : words_of(name)) {
    if (is_filler(word)) continue;
    (out += out.empty() ? "" : " ") += word == "TI" ? "Ti" : word == "SUPER" ? "Super" : word;
  }
  return out;
}

std::string gpu_without_memory(std::string_view asked) {
  std::string out;
  bool any = false;
  for (const std::string& word : words_of(asked)) {
    if (is_memory(word)) any = true;
    else (out += out.empty() ? "" : " ") += word;
  }
  return any && !out.empty() ? out : std::string(asked);
}

namespace {

// The models of gpu_facts() without memory sizes: "A100 80GB" is listed as "A100".
std::vector<std::string> known_models() {
  std::vector<std::string> out;
  for (const GpuFacts& row : gpu_facts()) {
    std::string known(row.model);
    const std::size_t last = known.rfind(' ');
    if (last != known.npos && is_memory(known.substr(last + 1))) known.resize(last);
    out.push_back(std::move(known));
  }
  return out;
}

bool is_among(const std::vector<std::string>& models, const std::string& model) {
  return std::any_of(models.begin(), models.end(), [&](const std::string& known) {
    return gpu_matches(known, 0, model) || gpu_matches(model, 0, known);
  });
}

}  // namespace

bool is_known_gpu(std::string_view asked) {
  const std::string model = gpu_model(asked);
  return model.empty() || is_memory(model) || is_among(known_models(), model);
}

std::string nearest_gpu(std::string_view asked) {
  const std::string model = gpu_model(asked);
  if (model.empty()) return "";
  const std::vector<std::string> models = known_models();
  if (is_among(models, model)) return "";
  // "A100x8" means eight A100s.
  const std::size_t x = model.rfind('X');
  if (x != model.npos && x > 0 && x + 1 < model.size() && model.size() - x < 4 &&
      model.find_first_not_of("0123456789", x + 1) == model.npos)
    if (const std::string one = gpu_model(model.substr(0, x)); is_among(models, one))
      return one + ":" + model.substr(x + 1);
  return did_you_mean(model, models);
}

bool makes_another_gpu(std::string_view word) {
  constexpr std::string_view others[] = {"TI", "SUPER", "LAPTOP", "MOBILE", "MAX", "D", "MIG", "VGPU"};
  const auto same = [word](std::string_view other) {
    return std::equal(word.begin(), word.end(), other.begin(), other.end(),
                      [](char a, char b) { return (a >= 'a' && a <= 'z' ? static_cast<char>(a - 32) : a) == b; });
  };
  return std::any_of(std::begin(others), std::end(others), same);
}

bool gpu_matches(std::string_view model, std::int64_t memory_bytes, std::string_view asked) {
  const std::vector<std::string> has = words_of(model), wanted = words_of(asked);
  const auto among = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  for (const std::string& word : wanted) {
    if (is_filler(word) || among(has, word)) continue;
    if (!is_memory(word) || !is_size_of(word, memory_bytes)) return false;
  }
  return std::none_of(has.begin(), has.end(),
                      [&](const std::string& word) { return makes_another_gpu(word) && !among(wanted, word); });
}

}  // namespace rille::provider
