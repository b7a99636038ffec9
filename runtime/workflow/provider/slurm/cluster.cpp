#include "runtime/workflow/provider/slurm/cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

namespace {

constexpr std::int64_t small_machine_cpus = 4;  // CPUs of a machine without GPUs, if the query names no number

Error wrong(const std::string& what, std::string hint) {
  return make_error(ErrorKind::config, "slurm: " + what, std::move(hint));
}

// Upper limits for a node's values, so that no sum or product of sinfo's numbers overflows.
constexpr std::int64_t gpus_max = 1 << 16, cpus_max = 1 << 20, memory_mib_max = std::int64_t{1} << 32;

std::int64_t number(const std::string& text, std::int64_t most) {
  std::int64_t out = 0;
  std::istringstream(text) >> out;
  return std::clamp<std::int64_t>(out, 0, most);
}

constexpr std::string_view reserved = "reserved";  // state of an idle node that only takes jobs of its reservation

std::vector<std::string> cut(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream cells(line);
  for (std::string cell; std::getline(cells, cell, '|');) {
    cell.erase(cell.find_last_not_of(" \r") + 1);
    out.push_back(std::move(cell));
  }
  return out;
}

struct Size {
  std::string type;
  int gpus = 0;
};

// CPUs and memory of a machine of that size: its share of the node, or the query's amount if that is larger.
struct Shape {
  std::int64_t cpus = 0, memory_mib = 0;
};

Shape shape_of(const SlurmNode& node, const Size& size, const OfferQuery& query) {
  const std::int64_t wanted_mib = (query.memory_bytes + (1 << 20) - 1) >> 20;
  Shape out;
  if (size.gpus > 0) {
    const int all = std::max(1, node.gpus.at(size.type));
    out = {node.cpus * size.gpus / all, node.memory_mib * size.gpus / all};
  } else {
    out.cpus = query.vcpus > 0 ? query.vcpus : std::min(node.cpus, small_machine_cpus);
    out.memory_mib = node.memory_mib * out.cpus / std::max<std::int64_t>(1, node.cpus);
  }
  return {std::max<std::int64_t>({1, out.cpus, query.vcpus}), std::max<std::int64_t>({1, out.memory_mib, wanted_mib})};
}

int count_of(const std::map<std::string, int>& gpus, const Size& size) {
  const auto found = gpus.find(size.type);
  return found == gpus.end() ? 0 : found->second;
}

bool fits(const SlurmNode& node, const Size& size, const Shape& shape) {
  return shape.cpus <= node.cpus && shape.memory_mib <= node.memory_mib && count_of(node.gpus, size) >= size.gpus;
}
bool fits_now(const SlurmNode& node, const Size& size, const Shape& shape) {
  return node.state != reserved && shape.cpus <= node.cpus_free && shape.memory_mib <= node.memory_mib_free &&
         count_of(node.gpus_free, size) >= size.gpus;
}

// The machine sizes to offer: 1, 2, 4, .. up to all GPUs of a node, or the requested number of GPUs.
std::vector<Size> sizes_of(const std::vector<const SlurmNode*>& nodes, const OfferQuery& query) {
  std::set<std::pair<std::string, int>> found;
  bool without = false;
  for (const SlurmNode* node : nodes) {
    if (node->gpus.empty()) without = true;
    for (const auto& [type, all] : node->gpus) {
      const std::vector<int> counts = query.counts();
      for (const int n : counts)
        if (n <= all) found.emplace(type, n);
      if (!counts.empty()) continue;
      for (const GpuWish& one : query.gpus)
        if (one.count > 0 && one.count <= all) found.emplace(type, one.count);
      for (int n = 1; n < all; n *= 2) found.emplace(type, n);
      found.emplace(type, all);
    }
  }
  std::vector<Size> out;
  if (without) out.push_back({});
  for (const auto& [type, n] : found) out.push_back({type, n});
  return out;
}

std::string model_of(const std::string& type, const SlurmSettings& settings) {
  const auto told = settings.gpus.find(type.empty() ? "gpu" : type);
  if (told != settings.gpus.end()) return gpu_model(told->second);
  return type.empty() ? "GPU" : gpu_model(type);
}

}  // namespace

Result<SlurmSettings> SlurmSettings::read(const Value& settings) {
  cloud::SettingsReader reader("slurm", settings);
  SlurmSettings out;
  out.via = reader.texts("via", {});
  out.partitions = reader.texts("partitions", {});
  out.options = reader.texts("options", {});
  out.account = reader.text("account");
  out.qos = reader.text("qos");
  out.directory = reader.text("directory", out.directory);
  const std::string wait = reader.text("wait", "5m");
  const Value gpus = reader.object("gpus"), price = reader.any("price");
  reader.any("traits");
  RILLE_CHECK(reader.done());
  for (const auto& [type, model] : *gpus.as_object()) {
    if (!model.as_string())
      return wrong(fmt::format("gpus.{} is not a string", type), "as in {\"a100\": \"A100 80GB\"}");
    out.gpus[type] = *model.as_string();
  }
  if (out.directory.empty() || out.directory[0] != '/')
    return wrong(fmt::format("directory '{}' is not absolute", out.directory), "begin it with '/'");
  const Result<std::int64_t> wait_ms = parse_duration_ms(wait);
  if (!wait_ms) return wrong(fmt::format("wait = '{}' is not a duration", wait), "as in \"5m\"; \"0s\": never");
  out.wait_ms = *wait_ms;
  if (!price.is_null()) {
    const double* dollars = price.as_number();
    if (!dollars || !(*dollars >= 0) || *dollars > 1e6)
      return wrong("price = " + price.to_json(), "dollars for a GPU and hour, as in 1.25");
    out.price_micros_per_gpu_hour = std::llround(*dollars * 1e6);
  }
  return out;
}

Result<> SlurmSettings::partitions_in(const std::vector<SlurmNode>& nodes) const {
  std::vector<std::string> there;
  for (const SlurmNode& node : nodes)
    if (std::find(there.begin(), there.end(), node.partition) == there.end()) there.push_back(node.partition);
  std::sort(there.begin(), there.end());  // sorted, since Slurm lists partitions in arbitrary order
  for (const std::string& name : partitions) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    const std::string near = did_you_mean(name, there);
    return wrong(fmt::format("there is no partition '{}'", name),
                 near.empty() ? fmt::format("`partitions` in the settings; there are: {}", fmt::join(there, ", "))
                              : fmt::format("did you mean '{}'?", near));
  }
  return {};
}

bool SlurmNode::usable() const {
  if (state.find('*') != std::string::npos) return false;  // a '*' after the state: the node does not respond
  const std::string word = state.substr(0, state.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  return word == "idle" || word == "mixed" || word == "allocated" || word == "completing" || word == "planned" ||
         word == reserved;
}

std::vector<std::string> slurm_node_words() {
  return {"sinfo", "-h", "-N", "-O",
          "NodeList:256|,Partition:256|,StateLong:64|,CPUsState:64|,Memory:32|,AllocMem:32|,Gres:1000|,GresUsed:1000|"};
}

std::map<std::string, int> read_slurm_gres(const std::string& text) {
  std::map<std::string, int> out;
  std::string plain;  // `text` without the parts in brackets, which may contain commas
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[') ++depth;
    if (depth == 0) plain += c;
    if (c == ')' || c == ']') --depth;
  }
  std::istringstream parts(plain);
  for (std::string part; std::getline(parts, part, ',');) {
    if (!part.starts_with("gpu:")) continue;
    const std::size_t colon = part.rfind(':');
    const std::string type = colon > 3 ? part.substr(4, colon - 4) : "";
    const std::int64_t n = number(part.substr(colon + 1), gpus_max);
    if (n > 0) out[type] = static_cast<int>(std::min(gpus_max, out[type] + n));
  }
  return out;
}

std::vector<SlurmNode> read_slurm_nodes(const std::string& text) {
  std::vector<SlurmNode> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> cells = cut(line);
    if (cells.size() < 8) continue;
    SlurmNode node;
    node.name = cells[0];
    node.partition = cells[1].ends_with('*') ? cells[1].substr(0, cells[1].size() - 1) : cells[1];
    node.state = cells[2];
    std::int64_t allocated = 0, idle = 0, other = 0, total = 0;  // the column is "allocated/idle/other/total"
    char slash = 0;
    std::istringstream(cells[3]) >> allocated >> slash >> idle >> slash >> other >> slash >> total;
    node.cpus = std::clamp<std::int64_t>(total, 0, cpus_max);
    node.cpus_free = std::clamp<std::int64_t>(idle, 0, cpus_max);
    node.memory_mib = number(cells[4], memory_mib_max);
    node.memory_mib_free = node.memory_mib - number(cells[5], memory_mib_max);
    node.gpus = node.gpus_free = read_slurm_gres(cells[6]);
    for (const auto& [type, used] : read_slurm_gres(cells[7]))
      if (const auto found = node.gpus_free.find(type); found != node.gpus_free.end()) found->second -= used;
    out.push_back(std::move(node));
  }
  return out;
}

std::vector<Offer> slurm_offers(const std::vector<SlurmNode>& nodes, const SlurmSettings& settings,
                                const OfferQuery& query) {
  std::map<std::string, std::vector<const SlurmNode*>> partitions;
  for (const SlurmNode& node : nodes) {
    const auto& only = settings.partitions;
    if (node.usable() && (only.empty() || std::find(only.begin(), only.end(), node.partition) != only.end()))
      partitions[node.partition].push_back(&node);
  }
  std::vector<Offer> out, later;
  for (const auto& [partition, members] : partitions) {
    for (const Size& size : sizes_of(members, query)) {
      const SlurmNode* best = nullptr;
      bool now = false;
      for (const SlurmNode* node : members) {
        if (size.gpus > 0 ? count_of(node->gpus, size) == 0 : !node->gpus.empty()) continue;
        const Shape shape = shape_of(*node, size, query);
        if (!fits(*node, size, shape) || now) continue;
        now = fits_now(*node, size, shape);
        if (now || !best) best = node;
      }
      if (!best || (!now && settings.wait_ms == 0)) continue;
      const Shape shape = shape_of(*best, size, query);
      Offer offer;
      offer.provider = "slurm";
      offer.id = size.gpus == 0
                     ? partition
                     : fmt::format("{}/{}{}{}", partition, size.type, size.type.empty() ? "" : ":", size.gpus);
      offer.region = partition;
      if (size.gpus > 0) offer.gpu = model_of(size.type, settings);
      offer.gpu_count = size.gpus;
      offer.vcpus = static_cast<int>(shape.cpus);
      offer.memory_bytes = shape.memory_mib << 20;
      offer.spot = query.spot;
      offer.price_micros_per_hour = settings.price_micros_per_gpu_hour * std::max(1, size.gpus);
      if (offer.matches(query)) (now ? out : later).push_back(std::move(offer));
    }
  }
  out.insert(out.end(), later.begin(), later.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const Offer& a, const Offer& b) { return a.price_micros_per_hour < b.price_micros_per_hour; });
  return out;
}

SlurmAsk slurm_ask(const std::string& offer_id) {
  const std::size_t slash = offer_id.find('/');
  if (slash == std::string::npos) return {offer_id, ""};
  return {offer_id.substr(0, slash), "gpu:" + offer_id.substr(slash + 1)};
}

}  // namespace rille::provider
