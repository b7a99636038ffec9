#include "runtime/workflow/provider/gpu_facts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/core/base/text.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

namespace {

constexpr double G = 1e9, T = 1e12;

// Since Ampere, data sheets list rates with 2:4 sparsity; this table has the dense rates, which are half. GeForce and
// RTX cards run fp16 with fp32 accumulation at half the listed rate. Columns: model, socket, architecture, sm, memory,
// bandwidth, fp32, tf32, fp16, bf16, fp8, int8, NVLink, W, year, $, source.
constexpr GpuFacts table[] = {
    {"P4", "", "Pascal", 61, 8 * G, 192 * G, 5.5 * T, 0, 0, 0, 0, 22 * T, 0, 75, 2016, 100,
     "NVIDIA Tesla P4 data sheet"},
    {"P40", "", "Pascal", 61, 24 * G, 346 * G, 12 * T, 0, 0, 0, 0, 47 * T, 0, 250, 2016, 300,
     "NVIDIA Tesla P40 data sheet"},
    {"P100", "PCIe", "Pascal", 60, 16 * G, 732 * G, 9.3 * T, 0, 18.7 * T, 0, 0, 0, 0, 250, 2016, 200,
     "NVIDIA Tesla P100 data sheet"},
    {"P100", "SXM", "Pascal", 60, 16 * G, 732 * G, 10.6 * T, 0, 21.2 * T, 0, 0, 0, 160 * G, 300, 2016, 200,
     "NVIDIA Tesla P100 data sheet"},
    {"V100 16GB", "SXM", "Volta", 70, 16 * G, 900 * G, 15.7 * T, 0, 125 * T, 0, 0, 0, 300 * G, 300, 2017, 500,
     "NVIDIA V100 data sheet"},
    {"V100 32GB", "SXM", "Volta", 70, 32 * G, 900 * G, 15.7 * T, 0, 125 * T, 0, 0, 0, 300 * G, 300, 2018, 1000,
     "NVIDIA V100 data sheet"},
    {"V100 16GB", "PCIe", "Volta", 70, 16 * G, 900 * G, 14 * T, 0, 112 * T, 0, 0, 0, 0, 250, 2017, 500,
     "NVIDIA V100 data sheet"},
    {"V100 32GB", "PCIe", "Volta", 70, 32 * G, 900 * G, 14 * T, 0, 112 * T, 0, 0, 0, 0, 250, 2018, 1000,
     "NVIDIA V100 data sheet"},
    {"T4", "", "Turing", 75, 16 * G, 300 * G, 8.1 * T, 0, 65 * T, 0, 0, 130 * T, 0, 70, 2018, 900,
     "NVIDIA T4 data sheet"},
    {"RTX 6000", "", "Turing", 75, 24 * G, 672 * G, 16.3 * T, 0, 130.5 * T, 0, 0, 261 * T, 100 * G, 260, 2018, 1500,
     "NVIDIA Turing architecture white paper, Quadro RTX 6000"},
    {"A10", "", "Ampere", 86, 24 * G, 600 * G, 31.2 * T, 62.5 * T, 125 * T, 125 * T, 0, 250 * T, 0, 150, 2021, 3000,
     "NVIDIA A10 data sheet"},
    {"A10G", "", "Ampere", 86, 24 * G, 600 * G, 35 * T, 35 * T, 70 * T, 70 * T, 0, 140 * T, 0, 300, 2021, 0,
     "NVIDIA A10G data sheet, as AWS publishes it", false},
    // An A16 board has four GPUs; this row is one GPU: price, power and memory are a quarter of the board's.
    {"A16", "", "Ampere", 86, 16 * G, 200 * G, 4.5 * T, 9 * T, 17.9 * T, 17.9 * T, 0, 35.9 * T, 0, 62.5, 2021, 900,
     "NVIDIA A16 data sheet"},
    {"A30", "", "Ampere", 80, 24 * G, 933 * G, 10.3 * T, 82 * T, 165 * T, 165 * T, 0, 330 * T, 200 * G, 165, 2021, 4500,
     "NVIDIA A30 data sheet"},
    {"A40", "", "Ampere", 86, 48 * G, 696 * G, 37.4 * T, 74.8 * T, 149.7 * T, 149.7 * T, 0, 299.3 * T, 112.5 * G, 300,
     2020, 5000, "NVIDIA A40 data sheet"},
    {"A100 80GB", "SXM", "Ampere", 80, 80 * G, 2039 * G, 19.5 * T, 156 * T, 312 * T, 312 * T, 0, 624 * T, 600 * G, 400,
     2020, 15000, "NVIDIA A100 data sheet"},
    {"A100 80GB", "PCIe", "Ampere", 80, 80 * G, 1935 * G, 19.5 * T, 156 * T, 312 * T, 312 * T, 0, 624 * T, 600 * G, 300,
     2021, 12000, "NVIDIA A100 data sheet"},
    {"A100 40GB", "SXM", "Ampere", 80, 40 * G, 1555 * G, 19.5 * T, 156 * T, 312 * T, 312 * T, 0, 624 * T, 600 * G, 400,
     2020, 7000, "NVIDIA A100 data sheet"},
    {"A100 40GB", "PCIe", "Ampere", 80, 40 * G, 1555 * G, 19.5 * T, 156 * T, 312 * T, 312 * T, 0, 624 * T, 600 * G, 250,
     2020, 6000, "NVIDIA A100 data sheet"},
    // The A100X card has an A100 and a BlueField-2.
    {"A100X", "", "Ampere", 80, 80 * G, 2039 * G, 19.9 * T, 159 * T, 318.5 * T, 318.5 * T, 0, 637 * T, 600 * G, 300,
     2021, 0, "its 6912 cores at 1440 MHz, the others by proportion to the A100", false},
    {"A800 80GB", "SXM", "Ampere", 80, 80 * G, 2039 * G, 19.5 * T, 156 * T, 312 * T, 312 * T, 0, 624 * T, 400 * G, 400,
     2022, 15000, "as the A100, its NVLink being 400 GB/s", false},
    {"L4", "", "Ada", 89, 24 * G, 300 * G, 30.3 * T, 60 * T, 121 * T, 121 * T, 242.5 * T, 242.5 * T, 0, 72, 2023, 2500,
     "NVIDIA L4 data sheet"},
    {"L40", "", "Ada", 89, 48 * G, 864 * G, 90.5 * T, 90.5 * T, 181.05 * T, 181.05 * T, 362 * T, 362 * T, 0, 300, 2022,
     7500, "NVIDIA L40 data sheet"},
    {"L40S", "", "Ada", 89, 48 * G, 864 * G, 91.6 * T, 183 * T, 362 * T, 362 * T, 733 * T, 733 * T, 0, 350, 2023, 8500,
     "NVIDIA L40S data sheet"},
    {"H100 80GB", "SXM", "Hopper", 90, 80 * G, 3350 * G, 67 * T, 494.5 * T, 989.5 * T, 989.5 * T, 1979 * T, 1979 * T,
     900 * G, 700, 2022, 28000, "NVIDIA H100 data sheet"},
    {"H100 80GB", "PCIe", "Hopper", 90, 80 * G, 2000 * G, 51 * T, 378 * T, 756.5 * T, 756.5 * T, 1513 * T, 1513 * T,
     600 * G, 350, 2022, 25000, "NVIDIA H100 data sheet"},
    {"H100 94GB", "NVL", "Hopper", 90, 94 * G, 3900 * G, 60 * T, 417.5 * T, 835.5 * T, 835.5 * T, 1670.5 * T,
     1670.5 * T, 600 * G, 400, 2023, 29000, "NVIDIA H100 data sheet"},
    {"H800 80GB", "SXM", "Hopper", 90, 80 * G, 3350 * G, 67 * T, 494.5 * T, 989.5 * T, 989.5 * T, 1979 * T, 1979 * T,
     400 * G, 700, 2023, 28000, "as the H100, its NVLink being 400 GB/s", false},
    {"H20", "", "Hopper", 90, 96 * G, 4000 * G, 44 * T, 74 * T, 148 * T, 148 * T, 296 * T, 296 * T, 900 * G, 400, 2024,
     12000, "the press, 2024", false},
    {"H200", "", "Hopper", 90, 141 * G, 4800 * G, 67 * T, 494.5 * T, 989.5 * T, 989.5 * T, 1979 * T, 1979 * T, 900 * G,
     700, 2024, 32000, "NVIDIA H200 data sheet"},
    {"GH200", "", "Hopper", 90, 96 * G, 4000 * G, 67 * T, 494.5 * T, 989.5 * T, 989.5 * T, 1979 * T, 1979 * T, 900 * G,
     700, 2023, 30000, "NVIDIA GH200 data sheet", false},
    {"B200", "", "Blackwell", 100, 180 * G, 8000 * G, 75 * T, 1125 * T, 2250 * T, 2250 * T, 4500 * T, 4500 * T,
     1800 * G, 1000, 2024, 40000, "NVIDIA HGX B200 specifications, an eighth of the board's"},
    {"B300", "", "Blackwell", 103, 288 * G, 8000 * G, 75 * T, 1125 * T, 2250 * T, 2250 * T, 4500 * T, 125 * T, 1800 * G,
     1100, 2025, 50000, "NVIDIA HGX B300 specifications, an eighth of the board's", false},
    {"GB200", "", "Blackwell", 100, 186 * G, 8000 * G, 80 * T, 1250 * T, 2500 * T, 2500 * T, 5000 * T, 5000 * T,
     1800 * G, 1200, 2024, 60000, "NVIDIA GB200 NVL72 specifications, one of 72", false},
    {"RTX 2080 Ti", "", "Turing", 75, 11 * G, 616 * G, 13.4 * T, 0, 53.8 * T, 0, 0, 215.2 * T, 100 * G, 250, 2018, 350,
     "its 4352 cores at 1545 MHz, the others by proportion to the RTX 6000, fp16 at half of that", false},
    {"RTX 3080", "", "Ampere", 86, 10 * G, 760 * G, 29.8 * T, 29.8 * T, 59.5 * T, 59.5 * T, 0, 238 * T, 0, 320, 2020,
     400, "its 8704 cores at 1710 MHz, the others by proportion to the RTX 3090", false},
    {"RTX 3080 Ti", "", "Ampere", 86, 12 * G, 912 * G, 34.1 * T, 34.1 * T, 68.2 * T, 68.2 * T, 0, 272.8 * T, 0, 350,
     2021, 550, "its 10240 cores at 1665 MHz, the others by proportion to the RTX 3090", false},
    {"RTX 3090", "", "Ampere", 86, 24 * G, 936 * G, 35.6 * T, 35.6 * T, 71 * T, 71 * T, 0, 284 * T, 112.5 * G, 350,
     2020, 900, "NVIDIA Ampere GA102 architecture white paper"},
    {"RTX 3090 Ti", "", "Ampere", 86, 24 * G, 1008 * G, 40 * T, 40 * T, 80 * T, 80 * T, 0, 320 * T, 112.5 * G, 450,
     2022, 1000, "its 10752 cores at 1860 MHz, the others by proportion to the RTX 3090", false},
    {"RTX 4080", "", "Ada", 89, 16 * G, 717 * G, 48.7 * T, 48.7 * T, 97.5 * T, 97.5 * T, 194.9 * T, 389.9 * T, 0, 320,
     2022, 1000, "its 9728 cores at 2505 MHz, the others by proportion to the RTX 4090", false},
    {"RTX 4080 Super", "", "Ada", 89, 16 * G, 736 * G, 52.2 * T, 52.2 * T, 104.4 * T, 104.4 * T, 208.9 * T, 417.8 * T,
     0, 320, 2024, 1000, "its 10240 cores at 2550 MHz, the others by proportion to the RTX 4090", false},
    {"RTX 4090", "", "Ada", 89, 24 * G, 1008 * G, 82.6 * T, 82.6 * T, 165.2 * T, 165.2 * T, 330.3 * T, 660.6 * T, 0,
     450, 2022, 2000, "NVIDIA Ada architecture white paper"},
    {"RTX 5070 Ti", "", "Blackwell", 120, 16 * G, 896 * G, 43.9 * T, 43.9 * T, 87.9 * T, 87.9 * T, 175.8 * T, 351.5 * T,
     0, 300, 2025, 800, "its 8960 cores at 2452 MHz, the others by proportion to the RTX 5090", false},
    {"RTX 5080", "", "Blackwell", 120, 16 * G, 960 * G, 56.3 * T, 56.3 * T, 112.6 * T, 112.6 * T, 225.1 * T, 450.2 * T,
     0, 360, 2025, 1100, "its 10752 cores at 2617 MHz, the others by proportion to the RTX 5090", false},
    {"RTX 5090", "", "Blackwell", 120, 32 * G, 1792 * G, 104.8 * T, 104.8 * T, 209.5 * T, 209.5 * T, 419 * T, 838 * T,
     0, 575, 2025, 2500, "NVIDIA RTX Blackwell architecture white paper"},
    {"RTX A4000", "", "Ampere", 86, 16 * G, 448 * G, 19.2 * T, 38.3 * T, 76.7 * T, 76.7 * T, 0, 153.4 * T, 0, 140, 2021,
     900, "NVIDIA RTX A4000 data sheet"},
    {"RTX A5000", "", "Ampere", 86, 24 * G, 768 * G, 27.8 * T, 55.6 * T, 111.1 * T, 111.1 * T, 0, 222.2 * T, 112.5 * G,
     230, 2021, 1800, "NVIDIA RTX A5000 data sheet"},
    {"RTX A6000", "", "Ampere", 86, 48 * G, 768 * G, 38.7 * T, 77.4 * T, 154.8 * T, 154.8 * T, 0, 309.7 * T, 112.5 * G,
     300, 2020, 4200, "NVIDIA Ampere GA102 architecture white paper, RTX A6000"},
    {"RTX 6000 ADA", "", "Ada", 89, 48 * G, 960 * G, 91.1 * T, 182.1 * T, 364.2 * T, 364.2 * T, 728.5 * T, 728.5 * T, 0,
     300, 2022, 6800, "NVIDIA Ada architecture white paper, RTX 6000"},
    {"RTX PRO 6000", "", "Blackwell", 120, 96 * G, 1792 * G, 125 * T, 250 * T, 500 * T, 500 * T, 1000 * T, 1000 * T, 0,
     600, 2025, 8500, "NVIDIA RTX PRO 6000 data sheet: fp32; the others by proportion to its 4000 fp4 TOPS", false},
};

// A GPU name split into words, without the memory size, which is in `gb` (0: the name has none).
struct Words {
  std::vector<std::string> words;
  double gb = 0;
};

Words split(std::string_view name) {
  Words out;
  std::string model = gpu_model(name) + " ", word;
  for (char c : model) {
    if (c != ' ') {
      word += c;
      continue;
    }
    const bool memory =
        word.size() > 2 && word.ends_with("GB") && word.find_first_not_of("0123456789") == word.size() - 2;
    if (memory) out.gb = number_at(word);
    else if (!word.empty()) out.words.push_back(word);
    word.clear();
  }
  return out;
}

bool within(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  return std::all_of(part.begin(), part.end(), [&](const std::string& word) {
    return std::find(whole.begin(), whole.end(), word) != whole.end();
  });
}

// Whether a reported memory size fits the nominal size `sold`. Drivers and clouds report GB or GiB, less a reserved
// part; a difference above 9 % means another GPU, or a MIG slice.
bool is_near(double bytes, double sold) {
  const auto near = [sold](double n) { return std::abs(n - sold) <= 0.09 * sold; };
  return near(bytes) || near(bytes / 1.073741824);
}

bool names_socket(std::string_view name, std::string_view socket) {
  std::string upper(name), wanted(socket);
  for (std::string* text : {&upper, &wanted})
    for (char& c : *text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return !wanted.empty() && upper.find(wanted) != std::string::npos;
}

// Scores how well a table row matches a name; 0: no match. Identical words: 1000, each common word: 10, socket: 1.
int fit(const GpuFacts& row, const Words& asked, double bytes, std::string_view name) {
  const Words has = split(row.model);
  const bool less = within(asked.words, has.words), more = within(has.words, asked.words);
  if (!less && !more) return 0;
  if (bytes > 0 && !is_near(bytes, row.memory_bytes)) return 0;
  // If only one of the two names has a word such as "Ti", they mean different GPUs.
  const std::vector<std::string>&longer = less ? has.words : asked.words, &shorter = less ? asked.words : has.words;
  for (const std::string& word : longer)
    if (makes_another_gpu(word) && std::find(shorter.begin(), shorter.end(), word) == shorter.end()) return 0;
  const int common = static_cast<int>(std::min(has.words.size(), asked.words.size()));
  return (less && more ? 1000 : 0) + 10 * common + (names_socket(name, row.socket) ? 1 : 0);
}

}  // namespace

std::span<const GpuFacts> gpu_facts() { return table; }

const GpuFacts* gpu_facts(std::string_view model, std::int64_t memory_bytes) {
  const Words asked = split(model);
  const auto tells = [](const std::string& word) { return word.find_first_of("0123456789") != std::string::npos; };
  // a name without digits, such as "RTX", is no model
  if (std::none_of(asked.words.begin(), asked.words.end(), tells)) return nullptr;
  const double bytes = memory_bytes > 0 ? static_cast<double>(memory_bytes) : asked.gb * G;
  const GpuFacts* best = nullptr;
  int best_fit = 0;
  for (const GpuFacts& row : table)
    if (const int how = fit(row, asked, bytes, model); how > best_fit) best = &row, best_fit = how;
  return best;
}

std::string gpu_name(const GpuFacts& facts) {
  return std::string(facts.model) + (facts.socket.empty() ? "" : " ") + std::string(facts.socket);
}

double rate_of(const GpuFacts& facts, std::string_view precision) {
  constexpr std::pair<std::string_view, double GpuFacts::*> rates[] = {
      {"fp32", &GpuFacts::fp32}, {"tf32", &GpuFacts::tf32}, {"fp16", &GpuFacts::fp16},
      {"bf16", &GpuFacts::bf16}, {"fp8", &GpuFacts::fp8},   {"int8", &GpuFacts::int8}};
  for (const auto& [name, rate] : rates)
    if (name == precision) return facts.*rate;
  return 0;
}

}  // namespace rille::provider
