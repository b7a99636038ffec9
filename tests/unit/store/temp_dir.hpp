// A directory that is removed with the test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

struct TempDir {
  std::filesystem::path path;
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "rille-test-XXXXXX";
    path = mkdtemp(name.data());
  }
  TempDir(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return path / name; }
  std::size_t entries() const {
    std::size_t n = 0;
    for (auto it = std::filesystem::directory_iterator(path); it != std::filesystem::directory_iterator(); ++it) ++n;
    return n;
  }
};
