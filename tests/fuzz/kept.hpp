// What the fuzzers keep in files: inputs in corpus/NAME/, and a dictionary, numbers.dict, in libFuzzer's format.
// RILLE_FUZZ_FOLDER is this folder, RILLE_FUZZ_NAME the fuzzer's name.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

inline std::string fuzz_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The files of corpus/NAME/, in the order of their names.
inline std::vector<std::string> fuzz_corpus() {
  std::vector<std::string> paths, out;
  std::error_code none;  // most fuzzers keep no files
  for (const auto& entry : std::filesystem::directory_iterator(RILLE_FUZZ_FOLDER "/corpus/" RILLE_FUZZ_NAME, none))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) out.push_back(fuzz_file(path));
  return out;
}

// The words of numbers.dict: what is between the first and the last quote of a line, with \\xNN, \\ and \\".
inline std::vector<std::string> fuzz_numbers() {
  std::vector<std::string> out;
  std::ifstream in(RILLE_FUZZ_FOLDER "/numbers.dict");
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find('"'), end = line.rfind('"');
    if (line.starts_with('#') || begin == end) continue;
    std::string word;
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (line[i] != '\\') word += line[i];
      else if (line[++i] != 'x') word += line[i];
      else word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16)), i += 2;
    }
    out.push_back(std::move(word));
  }
  return out;
}
