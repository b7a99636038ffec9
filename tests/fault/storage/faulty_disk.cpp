#include "tests/fault/storage/faulty_disk.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace rille::test {

namespace {
constexpr std::size_t sector_bytes = 512;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
}  // namespace

// An open file of SQLite: the file below, and the recorder of its changes.
struct FaultyFile {
  sqlite3_file base;
  FaultyDisk* disk;
  std::string* path;  // null: a temporary file, which no power cut concerns
  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  static FaultyFile& of(sqlite3_file* file) { return *reinterpret_cast<FaultyFile*>(file); }
  static const sqlite3_io_methods methods;

  static int close(sqlite3_file* f) {
    FaultyFile& file = of(f);
    delete file.path;
    return file.below()->pMethods->xClose(file.below());
  }
  static int read(sqlite3_file* f, void* to, int bytes, sqlite3_int64 offset) {
    sqlite3_file* b = of(f).below();
    return b->pMethods->xRead(b, to, bytes, offset);
  }
  static int write(sqlite3_file* f, const void* from, int bytes, sqlite3_int64 offset) {
    FaultyFile& file = of(f);
    if (file.path)
      if (int code = file.disk->change(*file.path, {offset, {static_cast<const char*>(from), std::size_t(bytes)}}))
        return code == SQLITE_IOERR ? SQLITE_IOERR_WRITE : code;
    return file.below()->pMethods->xWrite(file.below(), from, bytes, offset);
  }
  static int truncate(sqlite3_file* f, sqlite3_int64 size) {
    FaultyFile& file = of(f);
    if (file.path)
      if (file.disk->change(*file.path, {size, {}})) return SQLITE_IOERR_TRUNCATE;
    return file.below()->pMethods->xTruncate(file.below(), size);
  }
  static int sync(sqlite3_file* f, int) {
    FaultyFile& file = of(f);
    return file.path && file.disk->sync(*file.path) ? SQLITE_IOERR_FSYNC : SQLITE_OK;  // the file below is our memory
  }
  static int size(sqlite3_file* f, sqlite3_int64* out) {
    sqlite3_file* b = of(f).below();
    return b->pMethods->xFileSize(b, out);
  }
  static int lock(sqlite3_file* f, int level) { return of(f).below()->pMethods->xLock(of(f).below(), level); }
  static int unlock(sqlite3_file* f, int level) { return of(f).below()->pMethods->xUnlock(of(f).below(), level); }
  static int reserved(sqlite3_file* f, int* out) {
    return of(f).below()->pMethods->xCheckReservedLock(of(f).below(), out);
  }
  static int control(sqlite3_file* f, int op, void* arg) {
    return of(f).below()->pMethods->xFileControl(of(f).below(), op, arg);
  }
  static int sector_size(sqlite3_file*) { return sector_bytes; }
  static int characteristics(sqlite3_file*) { return 0; }  // promises nothing
  static int shm_map(sqlite3_file* f, int page, int bytes, int extend, void volatile** out) {
    return of(f).below()->pMethods->xShmMap(of(f).below(), page, bytes, extend, out);
  }
  static int shm_lock(sqlite3_file* f, int offset, int n, int flags) {
    return of(f).below()->pMethods->xShmLock(of(f).below(), offset, n, flags);
  }
  static void shm_barrier(sqlite3_file* f) { of(f).below()->pMethods->xShmBarrier(of(f).below()); }
  static int shm_unmap(sqlite3_file* f, int erase) { return of(f).below()->pMethods->xShmUnmap(of(f).below(), erase); }
};

const sqlite3_io_methods FaultyFile::methods = {
    2,           close,           read,    write,    truncate,    sync,      size,    lock,   unlock, reserved, control,
    sector_size, characteristics, shm_map, shm_lock, shm_barrier, shm_unmap, nullptr, nullptr};

FaultyDisk::FaultyDisk() : below_(sqlite3_vfs_find(nullptr)), vfs_(*below_) {
  vfs_.szOsFile = static_cast<int>(sizeof(FaultyFile)) + below_->szOsFile;
  vfs_.zName = "rille-faulty";
  vfs_.pAppData = this;
  vfs_.xOpen = &FaultyDisk::open;
  vfs_.xDelete = &FaultyDisk::erase;
  vfs_.pNext = nullptr;
  sqlite3_vfs_register(&vfs_, 1);
}

FaultyDisk::~FaultyDisk() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(below_, 1);
}

int FaultyDisk::open(sqlite3_vfs* vfs, const char* path, sqlite3_file* f, int flags, int* out_flags) {
  auto* disk = static_cast<FaultyDisk*>(vfs->pAppData);
  FaultyFile& file = FaultyFile::of(f);
  file = {{nullptr}, disk, path ? new std::string(path) : nullptr};
  if (path) disk->opened(path);
  int code = disk->below_->xOpen(disk->below_, path, file.below(), flags, out_flags);
  if (code == SQLITE_OK) file.base.pMethods = &FaultyFile::methods;
  else delete file.path;
  return code;
}

int FaultyDisk::erase(sqlite3_vfs* vfs, const char* path, int) {
  auto* disk = static_cast<FaultyDisk*>(vfs->pAppData);
  if (int code = disk->remove(path)) return code;
  return disk->below_->xDelete(disk->below_, path, 0);
}

// A file that was there before the disk was made faulty is on it.
void FaultyDisk::opened(const std::string& path) {
  std::lock_guard lock(mutex_);
  File& file = files_[path];
  if (std::exchange(file.opened_before, true)) return;
  if (std::filesystem::exists(path)) file.synced = content(path);
}

int FaultyDisk::strike() {
  if (!powered_) return SQLITE_IOERR;
  ++operations_;
  if (!fail_at_ || operations_ < fail_at_ || operations_ >= fail_at_ + count_) return SQLITE_OK;
  ++failed_;
  if (fault_ == Fault::power) powered_ = false;
  return fault_ == Fault::full ? SQLITE_FULL : SQLITE_IOERR;
}

int FaultyDisk::change(const std::string& path, Change what) {
  std::lock_guard lock(mutex_);
  bool before = powered_;
  int code = strike();
  // The write that the power cut meets may have begun.
  if (code == SQLITE_OK || (before && !powered_)) files_[path].since.push_back(std::move(what));
  return code;
}

int FaultyDisk::sync(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (int code = strike()) return code;
  File& file = files_[path];
  if (!file.synced) file.synced.emplace();
  for (const Change& c : file.since) apply(*file.synced, c);
  file.since.clear();
  return SQLITE_OK;
}

int FaultyDisk::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (int code = strike()) return code == SQLITE_FULL ? SQLITE_IOERR_DELETE : code;
  files_.erase(path);
  return SQLITE_OK;
}

void FaultyDisk::apply(std::string& image, const Change& c) {
  if (c.bytes.empty()) return image.resize(static_cast<std::size_t>(c.offset));
  auto at = static_cast<std::size_t>(c.offset);
  if (image.size() < at + c.bytes.size()) image.resize(at + c.bytes.size());
  image.replace(at, c.bytes.size(), c.bytes);
}

// All that was synced; then all, nothing, or any sectors of what came after.
std::string FaultyDisk::survivors(const File& file, std::mt19937& random) const {
  std::string image = file.synced.value_or("");
  std::uint32_t mood = random() % 4;
  for (const Change& c : file.since) {
    if (mood == 0) continue;
    if (mood == 1) {
      apply(image, c);
      continue;
    }
    if (c.bytes.empty()) {
      if (random() % 2) apply(image, c);
      continue;
    }
    for (std::size_t i = 0; i < c.bytes.size();) {
      auto at = static_cast<std::size_t>(c.offset) + i;
      std::size_t n = std::min(sector_bytes - at % sector_bytes, c.bytes.size() - i);
      if (random() % 2) apply(image, {static_cast<std::int64_t>(at), c.bytes.substr(i, n)});
      i += n;
    }
  }
  return image;
}

void FaultyDisk::fail_at(int n, Fault fault, int count) {
  std::lock_guard lock(mutex_);
  fail_at_ = operations_ + n;
  fault_ = fault;
  count_ = count;
}

void FaultyDisk::heal() {
  std::lock_guard lock(mutex_);
  fail_at_ = 0;
}

bool FaultyDisk::powered() const {
  std::lock_guard lock(mutex_);
  return powered_;
}

int FaultyDisk::operations() const {
  std::lock_guard lock(mutex_);
  return operations_;
}

int FaultyDisk::failed() const {
  std::lock_guard lock(mutex_);
  return failed_;
}

void FaultyDisk::settle(std::uint32_t seed) {
  std::lock_guard lock(mutex_);
  std::mt19937 random(seed);
  for (auto& [path, file] : files_) {
    std::filesystem::remove(path + "-shm");  // shared memory is not a disk
    if (!file.synced && random() % 2) {      // its name was never synced
      std::filesystem::remove(path);
      file = File();
      continue;
    }
    std::string image = survivors(file, random);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << image;
    file.synced = std::move(image);
    file.since.clear();
  }
  powered_ = true;
  fail_at_ = 0;
}

}  // namespace rille::test
