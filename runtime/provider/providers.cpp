#include "runtime/provider/providers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "runtime/base/places.hpp"
#include "runtime/provider/alibaba/alibaba.hpp"
#include "runtime/provider/aws/aws.hpp"
#include "runtime/provider/azure/azure.hpp"
#include "runtime/provider/gcp/gcp.hpp"
#include "runtime/provider/huawei/huawei.hpp"
#include "runtime/provider/kubernetes/kubernetes.hpp"
#include "runtime/provider/lambda/lambda.hpp"
#include "runtime/provider/remote/remote.hpp"
#include "runtime/provider/runpod/runpod.hpp"
#include "runtime/provider/slurm/slurm.hpp"
#include "runtime/provider/ssh/ssh.hpp"
#include "runtime/provider/tencent/tencent.hpp"
#include "runtime/provider/vast/vast.hpp"

namespace rille::provider {

namespace {

struct Row {
  const char* name;
  Result<std::unique_ptr<Provider>> (*make)(Setup);
};

// A new provider is a row here, and a folder beside this file.
constexpr Row rows[] = {
    {"ssh", make_ssh_provider},
    {"slurm", make_slurm_provider},
    {"kubernetes", make_kubernetes_provider},
    {"aws", make_aws_provider},
    {"alibaba", make_alibaba_provider},
    {"tencent", make_tencent_provider},
    {"huawei", make_huawei_provider},
    {"gcp", make_gcp_provider},
    {"azure", make_azure_provider},
    {"runpod", make_runpod_provider},
    {"lambda", make_lambda_provider},
    {"vast", make_vast_provider},
    {"remote", [](Setup s) { return make_remote_provider(s.loop, s.settings); }},
};

std::string hint_for(const std::string& name) {
  const std::string near = did_you_mean(name, provider_names());
  std::string all;
  for (const std::string& one : provider_names()) (all += all.empty() ? "" : " ") += one;
  return near.empty() ? "there are: " + all : fmt::format("did you mean '{}'?", near);
}

}  // namespace

const std::vector<std::string>& provider_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out{"local"};
    for (const Row& row : rows) out.emplace_back(row.name);
    return out;
  }();
  return names;
}

Result<std::vector<std::unique_ptr<Provider>>> make_providers(Loop& loop, const std::string& settings_file,
                                                              const std::string& home) {
  std::vector<std::unique_ptr<Provider>> out;
  std::ifstream file(settings_file, std::ios::binary);
  if (!file) return errno_error("read", settings_file, errno);
  std::stringstream text;
  text << file.rdbuf();
  const auto wrong = [&](const std::string& what, std::string hint) {
    return make_error(ErrorKind::config, settings_file + ": " + what, std::move(hint));
  };
  Result<Value> settings = Value::from_json(text.str());
  if (!settings) return wrong(settings.error().message, "it is JSON: {\"ssh\": {\"hosts\": [\"me@gpu1\"]}}");
  if (!settings->as_object())
    return wrong("it is no object", "an object with a field per provider: {\"ssh\": {\"hosts\": [\"me@gpu1\"]}}");
  for (const auto& [name, part] : *settings->as_object()) {
    const auto is_named = [n = name](const Row& row) { return n == row.name; };
    const Row* row = std::find_if(std::begin(rows), std::end(rows), is_named);
    if (row == std::end(rows))
      return wrong(fmt::format("there is no provider '{}'", name), hint_for(name));
    Result<std::unique_ptr<Provider>> made = row->make({loop, home, config_folder(), part});
    if (!made) {
      Error e = made.error();
      e.message = settings_file + ": " + e.message;
      return e;
    }
    out.push_back(std::move(*made));
  }
  return out;
}

}  // namespace rille::provider
