#include "runtime/workflow/provider/kubernetes/kubernetes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/core/base/plain_json.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/net/credentials/api.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/cloud/regional.hpp"
#include "runtime/workflow/provider/cloud/settings.hpp"
#include "runtime/workflow/provider/kubernetes/access.hpp"
#include "runtime/workflow/provider/kubernetes/claims.hpp"
#include "runtime/workflow/provider/kubernetes/objects.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "runtime/workflow/provider/owner.hpp"

namespace rille::provider {

namespace {

using net::Effect;
using net::Trouble;

constexpr std::int64_t first_look_ms = 100, longest_look_ms = 5'000, take_back_ms = 60'000;
constexpr int unseen_looks_max = 3;  // create stops waiting for a pod that is not visible after this many polls
constexpr int page_size = 500;
constexpr std::int64_t grace_ms_max = 3'600'000;

constexpr net::Meaning meanings[] = {
    {"ExceededQuota", Trouble::quota, "the namespace's quota is used up: see kubectl describe quota"},
    {"AlreadyExists", Trouble::conflict, "two create requests with the same name"},
    {"NotFound", Trouble::not_found, ""},
    {"Unauthorized", Trouble::auth, "does `kubectl get pods` work with this kubeconfig?"},
    {"Forbidden", Trouble::auth, "rille doctor --provider kubernetes --policy prints the required rights"},
};

constexpr const char* no_path = "NoSuchPath";  // error code that Rille sets if the server has no such API path

// Reads a response. Every response of Kubernetes has a `kind`: the requested kind, or "Status" for an error.
net::Answer read_answer(const net::HttpResponse& response) {
  net::Answer out;
  if (Result<Value> read = Value::from_json(response.body)) out.value = std::move(*read);
  const std::string kind = out.value.text("kind");
  out.foreign = response.ok() ? kind.empty() : kind != "Status";
  if (response.status == 404 && response.body.starts_with("404 page not found")) out.code = no_path;
  if (response.ok() || out.foreign) return out;
  out.code = out.value.text("reason");
  out.message = out.value.text("message");
  if (out.message.find("exceeded quota") != std::string::npos) out.code = "ExceededQuota";
  return out;
}

net::Parts sign(net::Parts parts, const net::Credentials& who, std::int64_t) {
  if (!who.token.empty()) parts.set_header("Authorization", "Bearer " + who.token);
  return parts;
}

struct Setting {
  KubeSettings kube;
  std::string kubeconfig, context, context_server, cache;
  std::vector<std::string> zones;  // empty: all zones
};

class Kubernetes final : public Provider, public Owned, public Clocked, public VolumeSeller {
 public:
  Kubernetes(Loop& loop, Setting setting, Traits traits)
      : loop_(loop), setting_(std::move(setting)), traits_(std::move(traits)),
        volume_kinds_(kube_volume_kinds(setting_.kube)) {}
  const std::string& name() const override { return name_; }
  const Traits& traits() const override { return traits_; }

  Async<std::vector<Offer>> offers(OfferQuery query, CancelToken token) override {
    std::vector<Offer> none;
    if (query.spot) co_return none;
    net::Query nothing;
    RILLE_CO_TRY(const Value::Array nodes, co_await pages("nodes", "/api/v1/nodes", nothing, token));
    Result<Value::Array> pods = co_await pages("pods", "/api/v1/pods", nothing, token);
    if (!pods && pods.error().http_status != 403) co_return named(pods.error(), "offers");
    std::vector<Offer> all = kube_offers(nodes, pods ? *pods : Value::Array(), setting_.kube, query);
    Result<std::vector<Offer>> there = cloud::only_there(name_, std::move(all), setting_.zones);
    if (!there) co_return named(there.error(), "offers");
    co_return there;
  }

  const std::vector<VolumeKind>& volume_kinds() const override { return volume_kinds_; }
  Async<std::vector<Offer>> volume_offers(VolumeWish wish, CancelToken token) override {
    net::Query nothing;
    RILLE_CO_TRY(const Value::Array nodes, co_await pages("nodes", "/api/v1/nodes", nothing, token));
    std::vector<Offer> all = kube_volume_offers(nodes, setting_.kube, wish);
    std::erase_if(all, [this](const Offer& o) {
      const std::vector<std::string>& zones = setting_.zones;
      return !o.region.empty() && !zones.empty() && std::find(zones.begin(), zones.end(), o.region) == zones.end();
    });
    co_return all;
  }

  // If the pod is not scheduled within wait_ms, deletes the Job and fails with kind capacity.
  Async<Machine> create(CreateRequest request, CancelToken token) override {
    RILLE_CO_CHECK(co_await open(token));
    if (is_volume(request)) co_return co_await create_volume(std::move(request), std::move(token));
    const std::string id = kube_name(request.tag);
    Result<Value> made = co_await send("POST", "create", jobs(), kube_job(request, settings_, api_->now_us()), token,
                                       request.send_by_wall_us);
    if (!made && made.error().code != "AlreadyExists") co_return named(made.error(), "create");
    const std::int64_t until_ms = now_ms() + settings_.wait_ms;
    int unseen = 0;
    for (std::int64_t rest_ms = first_look_ms;; rest_ms = std::min(2 * rest_ms, longest_look_ms)) {
      const Result<Value> pod = co_await pod_of(id, token);
      if (!pod && token.cancelled()) co_return pod.error();
      const std::string why = pod ? kube_unschedulable(*pod) : "";
      const bool seen = pod && !pod->is_null();
      if ((seen && why.empty()) || (!seen && ++unseen > unseen_looks_max)) break;
      if (seen && now_ms() >= until_ms) {
        if (Result<> back = co_await take_back(id, token); !back) co_return left_open(back.error());
        co_return named(
            make_error(ErrorKind::capacity, fmt::format("no node can run '{}': {}", request.offer.id, why),
                       "free or add such a node, or raise `wait` in the provider's settings to wait longer for one"),
            "create");
      }
      RILLE_CO_CHECK(co_await sleep_for(loop_, rest_ms, token));
    }
    Result<Machine> found = co_await describe(id, token);
    if (found && found->state != MachineState::gone) co_return found;
    Machine m;  // the new Job is not visible yet
    m.id = id;
    m.tag = request.tag;
    m.state = MachineState::pending;
    m.expires_wall_us = request.expires_wall_us;
    co_return m;
  }

  Async<Machine> describe(std::string id, CancelToken token) override {
    Machine gone;
    gone.id = id;
    if (!is_ours(id)) co_return gone;
    RILLE_CO_CHECK(co_await open(token));
    if (const std::string claim = kube_claim_in(id); !claim.empty()) {
      Result<Value> found = co_await send("GET", "describe", claims() + "/" + claim, Value(), token);
      if (!found && found.error().http_status == 404) co_return gone;
      if (!found) co_return named(found.error(), "describe");
      if ((*found)["metadata"].text("name") != claim) co_return net::not_theirs(name_, "describe");
      co_return kube_volume(*found);
    }
    Result<Value> job = co_await send("GET", "describe", jobs() + "/" + id, Value(), token);
    if (!job && job.error().http_status != 404) co_return named(job.error(), "describe");
    if (job && (*job)["metadata"].text("name") != id) co_return net::not_theirs(name_, "describe");
    RILLE_CO_TRY(const Value pod, co_await pod_of(id, token));
    co_return machine_of(id, job ? *job : Value(), pod);
  }

  Async<std::vector<Machine>> list(std::string tag_prefix, CancelToken token) override {
    RILLE_CO_CHECK(co_await open(token));
    net::Query ours{{"labelSelector", kube_tag_label}};
    RILLE_CO_TRY(const Value::Array all, co_await pages("list", jobs(), ours, token));
    RILLE_CO_TRY(const Value::Array every_pod, co_await pages("list", pods(), ours, token));
    std::map<std::string, std::pair<Value, Value>> found;
    for (const Value& pod : every_pod) {
      Value& place = found[pod["metadata"]["labels"].text(kube_tag_label)].second;
      if (place.is_null() || pod["metadata"].text("deletionTimestamp").empty()) place = pod;
    }
    for (const Value& job : all) found[job["metadata"].text("name")].first = job;
    std::vector<Machine> out;
    for (const auto& [id, both] : found) {
      Machine m = machine_of(id, both.first, both.second);
      if (m.state != MachineState::gone && m.tag.starts_with(tag_prefix)) out.push_back(std::move(m));
    }
    net::Query volumes{{"labelSelector", kube_volume_label}};
    const Result<Value::Array> every_claim = co_await pages("list", claims(), volumes, token);
    // Without the right to see claims none could be made.
    if (!every_claim && every_claim.error().http_status != 403) co_return every_claim.error();
    for (const Value& claim : every_claim ? *every_claim : Value::Array()) {
      Machine m = kube_volume(claim);
      if (m.tag.starts_with(tag_prefix)) out.push_back(std::move(m));
    }
    co_return out;
  }

  Async<> terminate(std::string id, CancelToken token) override {
    if (!is_ours(id)) co_return success();
    RILLE_CO_CHECK(co_await open(token));
    const std::string claim = kube_claim_in(id);
    if (!claim.empty()) RILLE_CO_CHECK(co_await check_unused(claim, token));
    net::Parts parts = base("DELETE", claim.empty() ? jobs() + "/" + id : claims() + "/" + claim);
    parts.query.emplace_back("propagationPolicy", "Background");
    const std::shared_ptr<net::Api> api = api_;
    Result<Value> done = co_await api->call("terminate", std::move(parts), Effect::none, token);
    if (!done && done.error().http_status != 404) co_return named(done.error(), "terminate");
    co_return success();
  }

  // Asks for the user's name by a SelfSubjectReview, which needs no permission; older servers do not have it. Then
  // lists Jobs, the first call that a rent makes.
  Async<Identity> check(CancelToken token) override {
    RILLE_CO_CHECK(co_await open(token));
    Value review;
    review.set("apiVersion", "authentication.k8s.io/v1").set("kind", "SelfSubjectReview");
    Result<Value> told =
        co_await send("POST", "check", "/apis/authentication.k8s.io/v1/selfsubjectreviews", std::move(review), token);
    if (!told && told.error().code != no_path && told.error().http_status != 404)
      co_return named(told.error(), "check");
    net::Query ours{{"labelSelector", kube_tag_label}};
    RILLE_CO_CHECK(co_await pages("check", jobs(), ours, token));
    RILLE_CO_TRY(const net::FoundKeys found, co_await chain_->get(token));
    Identity out;
    if (told) out.who = (*told)["status"]["userInfo"].text("username");
    out.account = fmt::format("{}, namespace {}", host_, settings_.name_space);
    out.from = found.from;
    out.age_unknown = "a cluster does not tell it";
    out.skew_us = api_->skew_us();
    co_return out;
  }

  std::int64_t skew_us() const override { return api_ ? api_->skew_us() : 0; }
  Async<std::string> owner(std::string, CancelToken token) override {
    RILLE_CO_CHECK(co_await open(token));
    co_return fmt::format("cluster {}, namespace {}", host_, settings_.name_space);
  }

 private:
  std::string jobs() const { return "/apis/batch/v1/namespaces/" + settings_.name_space + "/jobs"; }
  std::string claims() const { return "/api/v1/namespaces/" + settings_.name_space + "/persistentvolumeclaims"; }
  std::string pods() const { return "/api/v1/namespaces/" + settings_.name_space + "/pods"; }
  static bool is_ours(const std::string& id) {
    const std::string claim = kube_claim_in(id), &name = claim.empty() ? id : claim;
    return name.starts_with("rille-") && name.find_first_not_of("0123456789abcdef", 6) == std::string::npos;
  }

  // The claim's name comes from the tag, so a claim that is there already is the volume.
  Async<Machine> create_volume(CreateRequest request, CancelToken token) {
    Value claim = kube_claim(request, settings_);
    Machine made = kube_volume(claim);
    const Result<Value> sent =
        co_await send("POST", "create", claims(), std::move(claim), token, request.send_by_wall_us);
    if (!sent && sent.error().code != "AlreadyExists") co_return named(sent.error(), "create");
    co_return made;
  }

  // Kubernetes would accept the deletion of a claim that a pod has, and delete it with that pod.
  Async<> check_unused(std::string claim, CancelToken token) {
    net::Query nothing;
    RILLE_CO_TRY(const Value::Array all, co_await pages("terminate", pods(), nothing, token));
    const std::string pod = kube_user_of(all, claim);
    if (pod.empty()) co_return success();
    co_return named(make_error(ErrorKind::state, fmt::format("the pod {} has the claim {}", pod, claim),
                               "delete the volume when the pod has ended"),
                    "terminate");
  }

  // Deletes the Job and waits until it is gone: after a refused create no machine may exist.
  Async<> take_back(std::string id, CancelToken token) {
    RILLE_CO_CHECK(co_await terminate(id, token));
    const std::int64_t until_ms = now_ms() + take_back_ms;
    for (std::int64_t rest_ms = first_look_ms;; rest_ms = std::min(2 * rest_ms, longest_look_ms)) {
      RILLE_CO_TRY(const Machine m, co_await describe(id, token));
      if (m.state == MachineState::gone) co_return success();
      if (now_ms() >= until_ms)
        co_return named(
            make_error(ErrorKind::network, fmt::format("the job '{}', which found no node, does not end", id),
                       "delete it by hand: kubectl delete job; Rille asks again by itself"),
            "create");
      RILLE_CO_CHECK(co_await sleep_for(loop_, rest_ms, token));
    }
  }

  // Connects to the cluster. The first call reads the kubeconfig; later calls only renew a plug-in's credentials.
  Async<> open(CancelToken token) {
    if (!chain_) {
      KubeAccess access;
      if (setting_.context_server.empty()) {
        Result<KubeAccess> found =
            co_await find_kube_access(loop_, setting_.kubeconfig, setting_.context, setting_.cache, token);
        if (!found) co_return named(found.error(), "connect");
        access = std::move(*found);
      } else {
        access.server = setting_.context_server;
      }
      if (!chain_) RILLE_CO_CHECK(use(std::move(access)));  // unless a concurrent call has set chain_
    }
    if (access_.user["exec"].as_object()) {
      const Result<net::FoundKeys> asked = co_await chain_->get(token);
      if (!asked) co_return named(asked.error(), "connect");
    }
    if (!api_) make_api();
    co_return success();
  }

  Result<> use(KubeAccess access) {
    const std::size_t host = access.server.find("://");
    if (host == std::string::npos)
      return named(make_error(ErrorKind::config, fmt::format("kubernetes: '{}' is not a server URL", access.server),
                              "as in https://10.0.0.1:6443"),
                   "connect");
    scheme_ = access.server.substr(0, host);
    host_ = access.server.substr(host + 3);
    if (host_.ends_with('/')) host_.pop_back();
    settings_ = setting_.kube;
    if (settings_.name_space.empty()) settings_.name_space = access.name_space.empty() ? "default" : access.name_space;
    access_ = std::move(access);
    std::vector<net::KeySource> sources{{"kubectl config view", [this](CancelToken t) { return keys(std::move(t)); }}};
    chain_ = std::make_unique<net::CredentialChain>(loop_, name_, std::move(sources), "kubectl config view");
    return {};
  }

  // Replaces api_. Calls in progress hold the earlier Api by their shared_ptr.
  void make_api() {
    net::ApiOptions options{.provider = name_, .meanings = meanings, .read = read_answer, .sign = sign};
    options.ca_file = access_.ca_file;
    options.client_certificate = access_.client_certificate;
    options.client_key = access_.client_key;
    api_ = std::make_shared<net::Api>(loop_, std::move(options), *chain_);
  }

  Async<std::optional<net::FoundKeys>> keys(CancelToken token) {
    RILLE_CO_TRY(std::optional<KubeKeys> told, co_await kube_keys(loop_, access_.user, access_.cluster, token));
    std::optional<net::FoundKeys> found;
    if (told) found = std::move(told->found);
    if (told && !told->client_key.empty() && told->client_certificate != access_.client_certificate) {
      access_.client_certificate = std::move(told->client_certificate);
      access_.client_key = std::move(told->client_key);
      if (api_) make_api();
    }
    // The client certificate identifies the user, or the cluster needs no credentials: return empty keys.
    if (!found && (!access_.client_certificate.empty() || access_.user.is_null())) found.emplace();
    co_return found;
  }

  net::Parts base(const char* method, std::string path) const {
    net::Parts out;
    out.method = method;
    out.scheme = scheme_;
    out.host = host_;
    out.path = std::move(path);
    return out;
  }

  Async<Value> send(const char* method, std::string operation, std::string path, Value body, CancelToken token,
                    std::int64_t send_by_wall_us = 0) {
    net::Parts parts = base(method, std::move(path));
    const bool lasting = !body.is_null();
    if (lasting) {
      parts.set_header("Content-Type", "application/json");
      parts.body = to_plain_json(body);
    }
    const Effect effect = (lasting ? Effect::lasting : Effect::none).by(send_by_wall_us);
    const std::shared_ptr<net::Api> api = api_;
    co_return co_await api->call(std::move(operation), std::move(parts), effect, token);
  }

  Async<Value::Array> pages(std::string operation, std::string path, net::Query query, CancelToken token) {
    RILLE_CO_CHECK(co_await open(token));
    Value::Array out;
    std::string more;
    do {
      net::Parts parts = base("GET", path);
      parts.query = query;
      parts.query.emplace_back("limit", std::to_string(page_size));
      if (!more.empty()) parts.query.emplace_back("continue", more);
      const std::shared_ptr<net::Api> api = api_;
      Result<Value> page = co_await api->call(operation, std::move(parts), Effect::none, token);
      if (!page) co_return named(page.error(), operation.c_str());
      if (!page->text("kind").ends_with("List")) co_return named(net::not_theirs(name_, operation), operation.c_str());
      const Value& items = (*page)["items"];
      if (items.as_array()) out.insert(out.end(), items.as_array()->begin(), items.as_array()->end());
      more = (*page)["metadata"].text("continue");
    } while (!more.empty());
    co_return out;
  }

  // The pod of a Job; null: no pod. If there are several, prefers a pod that is not terminating.
  Async<Value> pod_of(std::string id, CancelToken token) {
    net::Query of{{"labelSelector", std::string(kube_tag_label) + "=" + id}};
    RILLE_CO_TRY(const Value::Array all, co_await pages("describe", pods(), of, token));
    Value out;
    for (const Value& pod : all)
      if (out.is_null() || pod["metadata"].text("deletionTimestamp").empty()) out = pod;
    co_return out;
  }

  Machine machine_of(const std::string& id, const Value& job, const Value& pod) const {
    Machine m = kube_machine(job, pod, loop_.clock().wall_us());
    m.id = id;
    const bool several = setting_.kubeconfig.find(':') != std::string::npos;  // --kubeconfig takes only one file
    if (several) m.channel.argv_prefix = {"env", "KUBECONFIG=" + setting_.kubeconfig, "kubectl"};
    else m.channel.argv_prefix = {"kubectl"};
    if (!several && !setting_.kubeconfig.empty())
      m.channel.argv_prefix.push_back("--kubeconfig=" + setting_.kubeconfig);
    if (!setting_.context.empty()) m.channel.argv_prefix.push_back("--context=" + setting_.context);
    if (!setting_.context_server.empty()) m.channel.argv_prefix.push_back("--server=" + setting_.context_server);
    for (const std::string& word : {"--namespace=" + settings_.name_space, std::string("exec"), std::string("-i"),
                                    pod["metadata"].text("name"), std::string("--")})
      m.channel.argv_prefix.push_back(word);
    for (const std::string& word : kube_enter()) m.channel.argv_prefix.push_back(word);
    m.channel.directory = kube_directory;
    return m;
  }

  std::int64_t now_ms() const { return loop_.clock().monotonic_ns() / 1'000'000; }

  Error named(Error error, const char* operation) const {
    error.provider = name_;
    if (error.operation.empty()) error.operation = operation;
    return error;
  }

  Loop& loop_;
  Setting setting_;
  Traits traits_;
  const std::vector<VolumeKind> volume_kinds_;
  std::string name_ = "kubernetes", scheme_, host_;
  KubeSettings settings_;  // the provider's settings; namespace from the context if unset
  KubeAccess access_;      // client certificate: the newest from a plug-in
  std::unique_ptr<net::CredentialChain> chain_;
  std::shared_ptr<net::Api> api_;
};

Error refused(const std::string& what, std::string hint) {
  return make_error(ErrorKind::config, "kubernetes: " + what, std::move(hint));
}

Result<> check_classes(const Value& classes) {
  if (const Value::Object* all = classes.as_object())
    for (const auto& [name, mode] : *all)
      if (mode != Value("ReadWriteOnce") && mode != Value("ReadWriteMany"))
        return refused(fmt::format("storage_classes: {} = {} is no access mode", name, mode.to_json()),
                       "\"ReadWriteMany\" if several pods may have a volume of that class, else \"ReadWriteOnce\"");
  return success();
}

}  // namespace

Result<std::unique_ptr<Provider>> make_kubernetes_provider(Setup setup) {
  cloud::SettingsReader read("kubernetes", setup.settings);
  Setting s;
  s.cache = setup.home + "/cache";
  s.kubeconfig = read.text("kubeconfig");
  s.context = read.text("context");
  s.context_server = read.text("server");
  s.kube.name_space = read.text("namespace");
  s.kube.image = read.text("image", "docker.io/library/debian:12-slim");
  s.kube.priority_class = read.text("priority_class");
  s.kube.service_account = read.text("service_account");
  s.kube.pull_secret = read.text("pull_secret");
  s.kube.labels = read.tags("labels");
  s.kube.gpus = read.tags("gpus");
  s.kube.storage_classes = read.object("storage_classes");
  s.zones = read.texts("regions", {});
  s.kube.node_selector = read.object("node_selector");
  s.kube.tolerations = read.any("tolerations");
  const std::string wait = read.text("wait", "5m"), grace = read.text("grace", "30s");
  const Value price = read.any("price");
  read.object("endpoints");
  read.any("traits");
  RILLE_CHECK(read.done());
  if (!s.context.empty() && !s.context_server.empty())
    return refused("both context and server are set", "a context names its server");
  RILLE_CHECK(check_classes(s.kube.storage_classes));
  if (!s.kube.tolerations.is_null() && !s.kube.tolerations.as_array())
    return refused("tolerations = " + s.kube.tolerations.to_json(), "a list, as in a pod's spec");
  const Result<std::int64_t> wait_ms = parse_duration_ms(wait);
  if (!wait_ms) return refused(fmt::format("wait = '{}' is not a duration", wait), "as in \"5m\"; \"0s\": never");
  s.kube.wait_ms = *wait_ms;
  const Result<std::int64_t> grace_ms = parse_duration_ms(grace);
  if (!grace_ms || *grace_ms < 1'000 || *grace_ms > grace_ms_max)
    return refused(fmt::format("grace = '{}' is not a duration of 1 s to 1 h", grace),
                   "as in \"30s\": the time that an evicted pod has left");
  s.kube.grace_s = *grace_ms / 1'000;
  if (!price.is_null()) {
    const Result<Micros> micros =
        price.as_number() ? micros_from_dollars(*price.as_number()) : Result<Micros>(make_error(ErrorKind::config, ""));
    if (!micros || *micros < 0) return refused("price = " + price.to_json(), "dollars for a GPU and hour, as in 1.25");
    s.kube.price_micros_per_gpu_hour = *micros;
  }
  Traits traits;
  // The Job's name prevents a second machine only while the Job exists; after it has ended, a repeated create makes
  // another Job.
  traits.token_lifetime_ms = 0;
  traits.visibility_lag_ms = 30'000;
  traits.owned = true;
  traits.look_every_ms = 60'000;
  traits.teardown_ms = 90'000 + s.kube.grace_s * 1'000;  // until the Job's deadline and its pod's grace period end
  traits.dead_man = DeadMan::provider;
  RILLE_TRY(traits, read_traits(setup.settings["traits"], std::move(traits)));
  return std::unique_ptr<Provider>(std::make_unique<Kubernetes>(setup.loop, std::move(s), std::move(traits)));
}

}  // namespace rille::provider
