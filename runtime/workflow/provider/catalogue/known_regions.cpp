// Regions and their compliance tags, as far as they apply to a region as a whole: the location and the provider's
// agreements. Not legal advice.
//   gdpr     the region lies in the EU or the EEA: the providers' lists of regions
//   hipaa    the provider signs a business associate agreement that covers virtual machines there:
//            https://aws.amazon.com/compliance/hipaa-eligible-services-reference/
//            https://learn.microsoft.com/azure/compliance/offerings/offering-hipaa-us
//            https://cloud.google.com/security/compliance/hipaa
//   mlps3    mainland China, where the provider's clouds are graded 3 under the Multi-Level Protection Scheme (MLPS
//            2.0, GB/T 22239): the trust centres of Alibaba Cloud, Tencent Cloud and Huawei Cloud; of AWS China
//            (Sinnet, NWCD) and Azure China (21Vianet)
//   fedramp  FedRAMP High: the government regions of AWS and Azure
#include <algorithm>

#include "runtime/workflow/provider/catalogue/known.hpp"

namespace rille::provider {

namespace {

struct Rule {
  std::string_view provider, region;  // `region`: "cn-*" is a prefix, "*, DE" a suffix, "*" means all regions
  std::string_view tag;               // "hipaa" grants the tag; "-hipaa" denies it, whatever later rules say
};

// For each tag, the first rule that matches the region decides.
constexpr Rule rules[] = {
    {"aws", "eu-west-2", "-gdpr"},     // London
    {"aws", "eu-central-2", "-gdpr"},  // Zurich
    {"aws", "eu-*", "gdpr"},
    {"aws", "cn-*", "-hipaa"},
    {"aws", "*", "hipaa"},
    {"aws", "cn-*", "mlps3"},
    {"aws", "us-gov-*", "fedramp"},
    {"azure", "westeurope", "gdpr"},
    {"azure", "northeurope", "gdpr"},
    {"azure", "francecentral", "gdpr"},
    {"azure", "francesouth", "gdpr"},
    {"azure", "germanywestcentral", "gdpr"},
    {"azure", "germanynorth", "gdpr"},
    {"azure", "swedencentral", "gdpr"},
    {"azure", "italynorth", "gdpr"},
    {"azure", "spaincentral", "gdpr"},
    {"azure", "polandcentral", "gdpr"},
    {"azure", "austriaeast", "gdpr"},
    {"azure", "belgiumcentral", "gdpr"},
    {"azure", "norwayeast", "gdpr"},
    {"azure", "norwaywest", "gdpr"},
    {"azure", "china*", "-hipaa"},
    {"azure", "*", "hipaa"},
    {"azure", "china*", "mlps3"},
    {"azure", "usgov*", "fedramp"},
    {"gcp", "europe-west2", "-gdpr"},  // London
    {"gcp", "europe-west6", "-gdpr"},  // Zurich
    {"gcp", "europe-*", "gdpr"},
    {"gcp", "*", "hipaa"},
    {"alibaba", "cn-hongkong", "-mlps3"},
    {"alibaba", "cn-*", "mlps3"},
    {"alibaba", "eu-central-1", "gdpr"},  // Frankfurt
    {"tencent", "ap-hongkong", "-mlps3"},
    {"tencent", "ap-beijing*", "mlps3"},
    {"tencent", "ap-shanghai*", "mlps3"},
    {"tencent", "ap-guangzhou*", "mlps3"},
    {"tencent", "ap-shenzhen*", "mlps3"},
    {"tencent", "ap-nanjing", "mlps3"},
    {"tencent", "ap-chengdu", "mlps3"},
    {"tencent", "ap-chongqing", "mlps3"},
    {"tencent", "eu-frankfurt", "gdpr"},
    {"huawei", "cn-*", "mlps3"},
    {"huawei", "eu-west-101", "gdpr"},       // Dublin
    {"lambda", "europe-central-1", "gdpr"},  // Germany
    {"lambda", "europe-south-1", "gdpr"},    // Italy
    {"runpod", "EU-*", "gdpr"},
    {"runpod", "EUR-IS-*", "gdpr"},  // Iceland, in the EEA
    {"runpod", "EUR-NO-*", "gdpr"},  // Norway
    {"vast", "*, AT", "gdpr"},
    {"vast", "*, BE", "gdpr"},
    {"vast", "*, BG", "gdpr"},
    {"vast", "*, CY", "gdpr"},
    {"vast", "*, CZ", "gdpr"},
    {"vast", "*, DE", "gdpr"},
    {"vast", "*, DK", "gdpr"},
    {"vast", "*, EE", "gdpr"},
    {"vast", "*, ES", "gdpr"},
    {"vast", "*, FI", "gdpr"},
    {"vast", "*, FR", "gdpr"},
    {"vast", "*, GR", "gdpr"},
    {"vast", "*, HR", "gdpr"},
    {"vast", "*, HU", "gdpr"},
    {"vast", "*, IE", "gdpr"},
    {"vast", "*, IS", "gdpr"},
    {"vast", "*, IT", "gdpr"},
    {"vast", "*, LT", "gdpr"},
    {"vast", "*, LU", "gdpr"},
    {"vast", "*, LV", "gdpr"},
    {"vast", "*, MT", "gdpr"},
    {"vast", "*, NL", "gdpr"},
    {"vast", "*, NO", "gdpr"},
    {"vast", "*, PL", "gdpr"},
    {"vast", "*, PT", "gdpr"},
    {"vast", "*, RO", "gdpr"},
    {"vast", "*, SE", "gdpr"},
    {"vast", "*, SI", "gdpr"},
    {"vast", "*, SK", "gdpr"},
    // The regions of the simulated cloud.
    {"sim", "us-*", "hipaa"},
    {"sim", "eu-west", "hipaa"},
    {"sim", "eu-west", "gdpr"},
};

bool fits(std::string_view pattern, std::string_view region) {
  if (pattern.starts_with('*')) return region.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return region.starts_with(pattern.substr(0, pattern.size() - 1));
  return region == pattern;
}

}  // namespace

const std::vector<std::string>& compliance_tags() {
  static const std::vector<std::string> tags = {"gdpr", "hipaa", "mlps3", "fedramp"};
  return tags;
}

std::vector<std::string> compliance_of(std::string_view provider, std::string_view region) {
  const std::vector<std::string>& tags = compliance_tags();
  std::vector<std::string> out;
  unsigned decided = 0;  // bit n is set once a rule has decided tag n
  for (const Rule& r : rules) {
    if (r.provider != provider || !fits(r.region, region)) continue;
    const bool denied = r.tag.starts_with('-');
    const auto tag = std::find(tags.begin(), tags.end(), denied ? r.tag.substr(1) : r.tag);
    const unsigned bit = 1u << (tag - tags.begin());
    if (!(decided & bit) && !denied) out.push_back(*tag);
    decided |= bit;
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace rille::provider
