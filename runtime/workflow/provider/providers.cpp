#include "runtime/workflow/provider/providers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/store/settings.hpp"
#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/alibaba/alibaba.hpp"
#include "runtime/workflow/provider/alibaba/ram.hpp"
#include "runtime/workflow/provider/aws/aws.hpp"
#include "runtime/workflow/provider/aws/iam.hpp"
#include "runtime/workflow/provider/azure/arm.hpp"
#include "runtime/workflow/provider/azure/azure.hpp"
#include "runtime/workflow/provider/gcp/compute.hpp"
#include "runtime/workflow/provider/gcp/gcp.hpp"
#include "runtime/workflow/provider/huawei/ecs.hpp"
#include "runtime/workflow/provider/huawei/huawei.hpp"
#include "runtime/workflow/provider/kubernetes/kubernetes.hpp"
#include "runtime/workflow/provider/kubernetes/objects.hpp"
#include "runtime/workflow/provider/lambda/lambda.hpp"
#include "runtime/workflow/provider/remote/remote.hpp"
#include "runtime/workflow/provider/runpod/runpod.hpp"
#include "runtime/workflow/provider/slurm/slurm.hpp"
#include "runtime/workflow/provider/ssh/ssh.hpp"
#include "runtime/workflow/provider/tencent/cam.hpp"
#include "runtime/workflow/provider/tencent/tencent.hpp"
#include "runtime/workflow/provider/vast/vast.hpp"

namespace rille::provider {

namespace {

struct Row {
  const char* name;
  Result<std::unique_ptr<Provider>> (*make)(Setup);
  const char* verified;
  std::string (*policy)();
  Manner manner = {};
};

template <const auto& text>
std::string say() {
  return std::string(text) + "\n";
}

constexpr char whoever[] = "Any user who can log in there by ssh with a key.";
constexpr char slurm_user[] = "Any user who can submit jobs to the cluster.";
constexpr char runpod_key[] =
    "A key with read and write access to pods and network volumes, by REST and by GraphQL: RunPod's console, Settings, "
    "API keys.";
constexpr char lambda_key[] = "Lambda's keys have all rights of the account: there is no restricted key.";
constexpr char vast_key[] = R"({ "api": { "misc": {}, "user_read": {}, "instance_read": {}, "instance_write": {} } })";
constexpr char remote_says[] = "As its own server requires.";

// The list of providers: a new provider needs a row in this table and a folder next to this file.
constexpr Row rows[] = {
    {"ssh", make_ssh_provider, "a real sshd", say<whoever>, ssh_manner},
    {"slurm", make_slurm_provider, "a real Slurm of four nodes", say<slurm_user>, slurm_manner},
    {"kubernetes", make_kubernetes_provider, "fake", kube_policy, kubernetes_manner},
    {"aws", make_aws_provider, "fake and moto, signer = vendor SDK", aws::policy, aws_manner},
    {"alibaba", make_alibaba_provider, "fake, signer = vendor SDK", alibaba::policy, alibaba_manner},
    {"tencent", make_tencent_provider, "fake, signer = vendor SDK", tencent::policy, tencent_manner},
    {"huawei", make_huawei_provider, "fake, signer = vendor SDK", huawei::policy, huawei_manner},
    {"gcp", make_gcp_provider, "fake", gcp::policy, gcp_manner},
    {"azure", make_azure_provider, "fake", azure::policy, azure_manner},
    {"runpod", make_runpod_provider, "fake", say<runpod_key>, runpod_manner},
    {"lambda", make_lambda_provider, "fake", say<lambda_key>, lambda_manner},
    {"vast", make_vast_provider, "fake", say<vast_key>, vast_manner},
    {"remote", [](Setup s) { return make_remote_provider(s.loop, s.settings); }, "itself", say<remote_says>},
};

std::string hint_for(const std::string& name) {
  const std::string near = did_you_mean(name, provider_names());
  std::string all;
  for (const std::string& one : provider_names()) (all += all.empty() ? "" : " ") += one;
  return near.empty() ? "there are: " + all : fmt::format("did you mean '{}'?", near);
}

const Row* row_of(std::string_view name) {
  const auto is_named = [name](const Row& row) { return name == row.name; };
  const Row* row = std::find_if(std::begin(rows), std::end(rows), is_named);
  return row == std::end(rows) ? nullptr : row;
}

}  // namespace

const Manner& manner_of(std::string_view provider) {
  static constexpr Manner none;
  const Row* row = row_of(provider);
  return row ? row->manner : none;
}

std::vector<std::string> secret_variables() {
  std::vector<std::string> out;
  for (const Row& row : rows) out.insert(out.end(), row.manner.secrets.begin(), row.manner.secrets.end());
  return out;
}

Result<About> about_provider(const std::string& name) {
  if (name == "local") return About{"itself", "This machine's own user: no permissions needed.\n"};
  if (const Row* row = row_of(name)) return About{row->verified, row->policy()};
  return make_error(ErrorKind::invalid, fmt::format("there is no provider '{}'", name), hint_for(name));
}

Result<std::unique_ptr<Provider>> make_provider(const std::string& name, Setup setup) {
  if (const Row* row = row_of(name)) return row->make(std::move(setup));
  return make_error(ErrorKind::invalid, fmt::format("there is no provider '{}' that has settings", name),
                    hint_for(name));
}

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
  const auto wrong = [&](const std::string& what, std::string hint) {
    return make_error(ErrorKind::config, settings_file + ": " + what, std::move(hint));
  };
  RILLE_TRY(const Value settings, store::read_settings(settings_file));
  const Result<AddressPrices> addresses = read_address_prices(settings["address_price"]);
  if (!addresses) return wrong(addresses.error().message, addresses.error().hint);
  for (const auto& [name, part] : *settings.as_object()) {
    if (name == "rates") {
      if (const Result<Rates> rates = read_rates(part); !rates) return wrong(rates.error().message, rates.error().hint);
      continue;
    }
    if (name == "disk_price") {
      if (const Result<DiskPrices> prices = read_disk_prices(part); !prices)
        return wrong(prices.error().message, prices.error().hint);
      continue;
    }
    if (name == "address_price") continue;
    if (name == "local") {  // the local machine needs no settings
      if (!part.as_object() || !part.as_object()->empty())
        return wrong("local = " + part.to_json() + ": this machine takes no settings", "write {}, or leave it out");
      continue;
    }
    const Row* row = row_of(name);
    if (!row) return wrong(fmt::format("there is no provider '{}'", name), hint_for(name));
    Result<std::unique_ptr<Provider>> made = row->make({loop, home, installation_folder(), part});
    if (!made) {
      Error e = made.error();
      e.message = settings_file + ": " + e.message;
      return e;
    }
    auto* const addressed = dynamic_cast<Addressed*>(made->get());
    if (const auto at = addresses->find(name); addressed && at != addresses->end())
      addressed->set_address_price(static_cast<Micros>(std::ceil(at->second * 1e6 - 1e-6)));
    out.push_back(std::move(*made));
  }
  return out;
}

}  // namespace rille::provider
