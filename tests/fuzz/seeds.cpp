// libFuzzer knows seeds as files only: with RILLE_FUZZ_SEEDS=DIRECTORY a fuzzer writes its seeds there, and its words
// and those of numbers.dict to DIRECTORY.dict, and ends. night.py does it.
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/kept.hpp"

namespace {

std::string quoted(const std::string& word) {
  std::string out = "\"";
  for (const char c : word) {
    char hex[5];
    std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
    out += hex;
  }
  return out + "\"\n";
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const folder = std::getenv("RILLE_FUZZ_SEEDS");
  if (!folder) return 0;
  std::filesystem::create_directories(folder);
  std::vector<std::string> seeds = fuzz_seeds(), words = fuzz_words();
  for (const std::string& kept : fuzz_corpus()) seeds.push_back(kept);
  for (const std::string& number : fuzz_numbers()) words.push_back(number);
  for (std::size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(std::string(folder) + "/seed" + std::to_string(i), std::ios::binary) << seeds[i];
  std::ofstream dictionary(std::string(folder) + ".dict");
  for (const std::string& word : words)
    if (!word.empty() && word.size() <= 64) dictionary << quoted(word);
  dictionary.close();
  std::exit(0);
}
