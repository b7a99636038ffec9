#include "tests/fuzz/clouds.hpp"

#include <cstdlib>
#include <fstream>
#include <map>

#include "runtime/core/base/id.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::provider;

namespace clouds {

namespace {

// "URL" stands for the server's address, "HOME" for the folder, "GROUP" for a path of Azure's. As the fakes have it,
// with one region each.
const std::map<std::string, const char*>& settings() {
  static const std::map<std::string, const char*> all{
      {"alibaba",
       R"({"endpoints":{"ecs":"URL","sts":"URL","ram":"URL","metadata":"URL/_metadata"},"regions":["cn-hangzhou"],
           "image":"ubuntu_22_04_x64_20G_alibase_20260901.vhd","subnet":"vsw-bp1fake000000000000i",
           "security_group":"sg-bp1fake0000000000000","zone":"cn-hangzhou-i"})"},
      {"aws", R"({"endpoints":{"ec2":"URL","pricing":"URL","servicequotas":"URL","sts":"URL","iam":"URL","sso":"URL",
           "oidc":"URL","metadata":"URL/_metadata"},"regions":["us-east-1"],"image":"ami-0a1b2c3d4e5f60718",
           "subnet":"subnet-0aaaaaaaaaaaaaaa1","zone":"us-east-1a"})"},
      {"azure", R"({"endpoints":{"login":"URL","management":"URL","prices":"URL","metadata":"URL/_metadata"},
           "regions":["eastus"],"subscription":"e6728289-a239-4130-a0f0-eb1773ddc268","resource_group":"rille",
           "image":{"publisher":"microsoft-dsvm","offer":"ubuntu-hpc","sku":"2204","version":"latest"},
           "subnet":"GROUP/virtualNetworks/rille/subnets/default",
           "security_group":"GROUP/networkSecurityGroups/rille"})"},
      {"gcp", R"({"endpoints":{"token":"URL/token","compute":"URL/compute/v1","billing":"URL/v1","iam":"URL/v1",
           "metadata":"URL/_metadata"},"regions":["us-central1"],"project":"rille-fake","zone":"us-central1-a",
           "image":"projects/rille-fake/global/images/family/rille-gpu","network":"global/networks/default"})"},
      {"huawei",
       R"({"endpoints":{"ecs":"URL","iam":"URL","bss":"URL","evs":"URL","eip":"URL","metadata":"URL/_metadata",
           "bss_intl":"URL"},"regions":["cn-north-4"],"zone":"cn-north-4a",
           "image":"67f433d8-ed0e-4321-a8a2-a71838539e09","vpc":"0dae26c9-9a70-4392-93f3-87d53115d171",
           "subnet":"157ee789-03ea-45b1-a698-76c92660dd83","security_group":"f0ac4394-7e4a-4409-9701-ba8be283dbc3",
           "project":"dc57aa39c956b1f99964ef79448edb14"})"},
      {"kubernetes", R"({"endpoints":{"kubernetes":"URL"},"regions":["zone-a"],"namespace":"default",
           "image":"rille/agent:1","wait":"0s","kubeconfig":"HOME/kubeconfig"})"},
      {"lambda", R"({"endpoints":{"lambda":"URL/api/v1"},"regions":["us-east-1"],"image":"lambda-stack-24-04",
           "ssh_key":"rille"})"},
      {"remote", R"({"url":"URL"})"},
      {"runpod", R"({"endpoints":{"rest":"URL/v2","graphql":"URL/graphql"},"regions":["US-KS-2"],
           "image":"runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"})"},
      {"tencent", R"({"endpoints":{"cvm":"URL","cbs":"URL","sts":"URL","cam":"URL","metadata":"URL/_metadata"},
           "image":"img-487zeit5","regions":["ap-guangzhou"],"zone":"ap-guangzhou-6","vpc":"vpc-fake0001",
           "subnet":"subnet-fake0006","security_group":"sg-fake0001"})"},
      {"vast", R"({"endpoints":{"vast":"URL/api"},"regions":["Texas, US"],"image":"pytorch/pytorch:2.4.0-cuda12.4"})"}};
  return all;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

template <class T>
bool told(const Result<T>& result) {
  if (!result) fuzz_check(!result.error().message.empty(), "a refusal says why");
  return result.ok();
}

template <class T>
void promise(bool holds, const T& of, const char* words) {
  if (!holds) std::fprintf(stderr, "%s\n", of.to_value().to_json().c_str());
  fuzz_check(holds, words);
}

void check(const Machine& machine) {
  constexpr std::int64_t year_0_us = -62'200'000'000'000'000;  // an instant has no limit but its four digits
  promise(machine.created_wall_us >= year_0_us && machine.expires_wall_us >= 0, machine, "an instant is one");
  promise(machine.price_micros_per_hour >= price_unknown, machine, "a price is not negative");
  (void)machine.to_value().to_json();
}

void check(const Offer& offer) {
  promise(offer.gpu_count >= 0 && offer.vcpus >= 0, offer, "a count is not negative");
  promise(offer.memory_bytes >= 0 && offer.gpu_memory_bytes >= 0 && offer.disk_bytes_max >= 0, offer,
          "a size is not negative");
  for (const Micros price :
       {offer.price_micros_per_hour, offer.reserved_1y_micros_per_hour, offer.reserved_3y_micros_per_hour})
    promise(price >= price_unknown, offer, "a price is not negative");
  promise(offer.network_gbps >= 0, offer, "a rate is not negative");
  (void)offer.view().to_json();
}

std::vector<Offer> offers_of(Loop& loop, Provider& provider, bool spot) {
  OfferQuery query;
  query.spot = spot;
  query.left_out = std::make_shared<LeftOut>();
  const auto found = run_blocking(loop, provider.offers(query, {}));
  if (!told(found)) return {};
  for (const Offer& offer : *found) check(offer);
  return *found;
}

void live(Loop& loop, Provider& provider) {
  std::vector<Offer> all = offers_of(loop, provider, false);
  CreateRequest request;
  if (!all.empty()) request.offer = all.front();
  else request.offer.id = "us-east-1/p5.4xlarge", request.offer.provider = provider.name();
  request.token = derive_uuid({"fuzz"});
  request.tag = "rille-0123456789ab-fuzzoooooooooo-g1-x1900000000";
  request.expires_wall_us = loop.clock().wall_us() + 3'600'000'000;
  const auto made = run_blocking(loop, provider.create(request, {}));
  if (!told(made)) return;
  check(*made);
  const auto seen = run_blocking(loop, provider.describe(made->id, {}));
  if (told(seen)) check(*seen);
  (void)told(run_blocking(loop, provider.terminate(made->id, {})));
}

void list(Loop& loop, Provider& provider, bool all) {
  const auto found = run_blocking(loop, provider.list(all ? "rille-" : "rille-0123456789ab-fuzz", {}));
  if (!told(found)) return;
  for (const Machine& machine : *found) check(machine);
  if (found->empty()) return;
  const auto seen = run_blocking(loop, provider.describe(found->front().id, {}));
  if (told(seen)) check(*seen);
}

void resize(Loop& loop, Provider& provider) {
  const auto found = run_blocking(loop, provider.list("rille-", {}));
  const auto changed =
      run_blocking(loop, provider.resize(found && !found->empty() ? found->front().id : "us-east-1/i-1", "x", {}));
  if (told(changed)) check(*changed);
}

}  // namespace

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out;
    for (const auto& [name, text] : settings()) out.push_back(name);
    return out;
  }();
  return all;
}

std::unique_ptr<Provider> make(Loop& loop, const std::string& name, const std::string& url, const std::string& folder) {
  for (const char* variable :
       {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
        "TENCENTCLOUD_SECRET_ID", "TENCENTCLOUD_SECRET_KEY", "HUAWEICLOUD_SDK_AK", "HUAWEICLOUD_SDK_SK",
        "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "RUNPOD_API_KEY", "LAMBDA_API_KEY", "VAST_API_KEY"})
    ::setenv(variable, "fuzz", 0);
  ::setenv("AZURE_TENANT_ID", "a13a5652-f8bc-4340-a450-82275d80b8f0", 0);  // in a path: the fake's
  ::setenv("HOME", folder.c_str(), 1);
  if (name == "kubernetes" && !std::getenv("KUBECONFIG"))
    std::ofstream(folder + "/kubeconfig")
        << R"({"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"clusters":[{"name":
           "k","cluster":{"server":")"
        << url << R"("}}],"users":[{"name":"u","user":{"token":"fuzz"}}]})";
  std::string text = settings().at(name);
  replace_all(text, "URL", url);
  replace_all(text, "GROUP",
              "/subscriptions/e6728289-a239-4130-a0f0-eb1773ddc268/resourceGroups/rille/providers/Microsoft.Network");
  const char* const kubeconfig = std::getenv("KUBECONFIG");
  replace_all(text, "HOME/kubeconfig", kubeconfig ? kubeconfig : folder + "/kubeconfig");
  auto made = make_provider(name, Setup{loop, folder + "/home", folder + "/config", Value::from_json(text).value()});
  if (!made) std::fprintf(stderr, "%s\n", made.error().summary().c_str());
  fuzz_check(made.ok(), "the settings are sound");
  return std::move(*made);
}

void use(Loop& loop, Provider& provider, unsigned operation) {
  switch (operation % operations) {
    case 0: (void)offers_of(loop, provider, false); break;
    case 1: (void)offers_of(loop, provider, true); break;
    case 2: live(loop, provider); break;
    case 3: list(loop, provider, true); break;
    case 4: {
      const auto identity = run_blocking(loop, provider.check({}));
      if (told(identity)) (void)identity->to_value().to_json();
      break;
    }
    case 5: {
      const auto quotas = run_blocking(loop, provider.quotas("", {}));
      if (told(quotas))
        for (const Quota& quota : *quotas) (void)quota.to_value().to_json();
      break;
    }
    case 6: {
      OfferQuery query;
      query.spot = true;
      const auto points =
          run_blocking(loop, provider.price_history(query, loop.clock().wall_us() - 86'400'000'000, {}));
      if (told(points))
        for (const PricePoint& point : *points) fuzz_check(point.micros_per_hour >= 0, "a price is not negative");
      break;
    }
    default: resize(loop, provider);
  }
}

}  // namespace clouds
