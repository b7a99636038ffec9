// The layout of the catalogue file: a header, then the tables in the order of Header's counts, then the text. All
// numbers are in this machine's byte order, since the cache is never copied to another machine. Private to
// runtime/workflow/provider/catalogue.
#pragma once

#include <cstdint>
#include <type_traits>

namespace rille::provider::layout {

constexpr char magic[8] = {'R', 'I', 'L', 'L', 'E', 'C', 'A', 'T'};
constexpr std::uint32_t version = 4, byte_order = 0x01020304;

struct Header {
  char magic[8];
  std::uint32_t version, byte_order;
  std::uint64_t file_bytes;
  char checksum[32];  // XXH3-128 of everything after the header, in hexadecimal
  std::uint32_t parts, gpus, places, billings, words, numbers, rows, unused;
  std::uint64_t text_bytes;
};

struct Text {
  std::uint32_t at, size;  // offset and length of a string in the text pool, in bytes
};

struct Part {
  Text provider, scope, settings;
  std::int64_t time_us;
  std::uint32_t first, count;
  std::int64_t unpriced;
  Text unasked;
};

struct Gpu {
  Text model, vendor;
  std::int64_t memory_bytes;
};

struct Location {
  Text region, compliance;  // comma-separated tags
};

struct Billing {
  std::int64_t unit_s, minimum_s, minimum_micros, from_live;
};

// One offer. A query on a file that is not in memory takes as long as reading the rows; so rows are small, and values
// that many rows share are in tables.
struct Row {
  std::int64_t price_micros_per_hour;
  std::uint32_t id_at;  // offset of the id in the text pool
  std::int32_t vcpus;
  std::uint32_t memory_bytes, disk_bytes_max,
      disk_micros_per_gb_hour;  // memory_bytes to reserved_3y_..: indexes of numbers
  std::uint32_t reserved_1y_micros_per_hour, reserved_3y_micros_per_hour;
  float network_gbps;
  std::uint16_t id_size, gpu, place, billing, gpu_count, spot;
  std::uint16_t interconnect, rdma, disk_kind, driver, cuda_max, currency;  // indexes into the table of words
};

static_assert(sizeof(Header) == 96 && sizeof(Part) == 56 && sizeof(Gpu) == 24 && sizeof(Location) == 16 &&
              sizeof(Billing) == 32 && sizeof(Row) == 64);
static_assert(std::is_trivially_copyable_v<Row> && std::is_trivially_copyable_v<Header>);

}  // namespace rille::provider::layout
