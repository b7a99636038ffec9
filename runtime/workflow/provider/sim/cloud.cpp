#include "runtime/workflow/provider/sim/cloud.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/core/base/units.hpp"

namespace rille::provider::sim {

namespace {
constexpr std::string_view id_prefix = "sim-";
constexpr double day_us = 86'400e6;

// The earliest of the times that are not 0; 0 if all are 0.
std::int64_t earliest(std::initializer_list<std::int64_t> instants) {
  std::int64_t out = 0;
  for (std::int64_t t : instants)
    if (t && (!out || t < out)) out = t;
  return out;
}

Error nothing_left(const OfferParts& place) {
  Error e = make_error(ErrorKind::capacity,
                       fmt::format("the simulated cloud, {}, has no {} left in {}", place.spot ? "spot" : "on demand",
                                   place.type->id, place.region->id),
                       "choose another type or region, or rent again later");
  e.code = "InsufficientCapacity";
  return e;
}
}  // namespace

std::int64_t Box::idle_us() const { return idle_after_us ? std::max(live_us, busy_until_us) + idle_after_us : 0; }
std::int64_t Box::end_us() const { return earliest({gone_us, lost_us, expires_us, idle_us()}); }
bool Box::alive(std::int64_t at_us) const { return at_us >= landed_us && (!end_us() || at_us < end_us()); }
bool Box::preempted(std::int64_t at_us) const {
  return place.spot && lost_us && lost_us <= at_us && lost_us >= live_us &&
         lost_us == earliest({terminated_us, lost_us, expires_us, idle_us()});
}

Cloud::Cloud(const Clock& clock, Options options)
    : clock_(clock), options_(options), dice_(options.seed),
      market_(dice_.of("market"), options.scarcity, options.prices),
      origin_us_(clock.wall_us() - clock.monotonic_ns() / 1000) {}

Offer Cloud::offer_of(const OfferParts& place) const {
  Offer o;
  o.provider = "sim";
  o.id = offer_id(place);
  o.gpu = place.type->gpu;
  o.gpu_count = place.type->gpu_count;
  o.gpu_memory_bytes = place.type->gpu_memory_bytes;
  o.vcpus = place.type->vcpus;
  o.memory_bytes = place.type->memory_bytes;
  o.region = place.region->id;
  o.spot = place.spot;
  o.price_micros_per_hour = market_.price_micros_per_hour(place, now_us());
  o.billing.unit_s = options_.billing_unit_s;
  o.billing.minimum_s = options_.billing_minimum_s;
  o.billing.from_live = true;
  return o;
}

bool Cloud::has_none(const OfferParts& place) const {
  return options_.sold_out.contains(place.type->id) || options_.sold_out.contains(offer_id(place)) ||
         market_.sold_out(place, now_us()) ||
         dice_.chance(options_.faults.refuse, "refuse", static_cast<std::uint64_t>(counts.calls));
}

std::vector<Offer> Cloud::offers(const OfferQuery& query) const {
  std::vector<Offer> out;
  for (const OfferParts& place : all_places()) {
    if (place.spot != query.spot) continue;
    Offer o = offer_of(place);
    if (o.matches(query)) out.push_back(std::move(o));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Offer& a, const Offer& b) { return a.price_micros_per_hour < b.price_micros_per_hour; });
  return out;
}

// Draws at random all times of the machine's life: visible, live, preempted, lost.
void Cloud::foresee(Box& box) {
  const Dice own = dice_.of(box.id);
  double provisioning = static_cast<double>(options_.provisioning_ms) * 1000;
  box.shown_us = box.landed_us + static_cast<std::int64_t>(own.unit("shown") * options_.visibility_lag_ms * 1000);
  double until_live = 0.5 * provisioning + own.exponential(0.5 * provisioning, "up");
  box.live_us = box.landed_us + static_cast<std::int64_t>(until_live);
  box.forgotten = own.chance(options_.forgets, "forgotten");
  if (own.chance(options_.faults.stillborn, "stillborn")) {
    ++counts.stillborn;
    box.lost_us = box.landed_us + static_cast<std::int64_t>(own.unit("lost") * (box.live_us - box.landed_us));
    return;
  }
  if (auto said = options_.fates.find(static_cast<int>(boxes_.size()) + 1); said != options_.fates.end()) {
    box.lost_us = box.live_us + said->second.lost_after_ms * 1000;
    if (!said->second.notice) return;
    box.announced_us = box.lost_us;
    box.notice_us = std::max(box.live_us, box.announced_us - options_.spot_notice_ms * 1000);
    return;
  }
  double per_day = box.place.spot ? box.place.type->preemptions_per_day * options_.preemptions : 0;
  if (per_day <= 0) return;
  box.lost_us = box.live_us + static_cast<std::int64_t>(own.exponential(day_us / per_day, "preempted"));
  box.told_there = own.chance(0.5, "told there");
  if (own.chance(options_.without_notice, "notice")) return;
  box.announced_us = box.lost_us;
  if (own.chance(options_.faults.wrong_notice, "wrong")) box.lost_us += day_us;
  box.notice_us = std::max(box.live_us, box.announced_us - options_.spot_notice_ms * 1000);
}

Result<Machine> Cloud::create(const CreateRequest& request, std::int64_t late_us) {
  const std::int64_t now = now_us();
  for (const Box& box : boxes_)
    if (box.token == request.token && now - box.asked_us < options_.token_lifetime_ms * 1000) {
      ++counts.token_hits;
      Machine known = view(box);
      if (now < box.end_us() || !box.end_us()) known.tag = box.tag, known.state = MachineState::pending;
      return known;
    }
  if (is_volume(request)) return create_volume(request, late_us);
  OfferParts place = find_place(request.offer.id);
  if (!place.type)
    return make_error(ErrorKind::invalid, fmt::format("the simulated cloud has no offer '{}'", request.offer.id),
                      "`rille offers` lists them");
  if (has_none(place)) {
    ++counts.refused;
    return nothing_left(place);
  }
  const std::vector<Mount> mounts = mounts_in(request);
  RILLE_CHECK(check_volumes(mounts, place));
  Box box;
  for (const Mount& m : mounts) box.volumes.push_back(m.id);
  box.id = fmt::format("{}{}", id_prefix, boxes_.size() + 1);
  box.tag = request.tag;
  box.token = request.token;
  box.place = place;
  box.price_micros_per_hour = market_.price_micros_per_hour(place, now);
  box.asked_us = now;
  box.landed_us = now + late_us;
  box.expires_us = request.expires_wall_us;
  box.idle_after_us = request.idle_after_ms * 1000;
  foresee(box);
  ++counts.created;
  boxes_.push_back(std::move(box));
  Machine made = view(boxes_.back());
  made.tag = request.tag;  // the create response shows the tag at once, without visibility lag
  made.state = MachineState::pending;
  return made;
}

// The machine that has the volume; null: none has.
const Box* Cloud::user_of(const Box& volume) const {
  const auto has_it = [&](const Box& box) {
    return box.alive(now_us()) && std::find(box.volumes.begin(), box.volumes.end(), volume.id) != box.volumes.end();
  };
  const auto user = std::find_if(boxes_.begin(), boxes_.end(), has_it);
  return user == boxes_.end() ? nullptr : &*user;
}

Result<> Cloud::check_volumes(const std::vector<Mount>& mounts, const OfferParts& place) {
  for (const Mount& m : mounts) {
    const auto volume = locate(m.id);
    if (volume == boxes_.end() || !volume->is_volume || volume->terminated_us || !volume->alive(now_us()))
      return make_error(ErrorKind::invalid, fmt::format("the volume {} does not exist", m.id), "make another one");
    if (volume->place.region != place.region)
      return make_error(
          ErrorKind::invalid,
          fmt::format("the volume {} is in {}, not in {}", m.id, volume->place.region->id, place.region->id),
          "rent where the volume is");
    if (const Box* user = volume->shared ? nullptr : user_of(*volume))
      return make_error(ErrorKind::invalid, fmt::format("the volume {} is in use by {}", m.id, user->id),
                        "release that machine first");
  }
  return success();
}

std::vector<Offer> Cloud::volume_offers(const VolumeWish& wish) const {
  std::vector<Offer> out;
  for (const Type& type : volume_types())
    for (const Region& region : regions()) {
      if (type.id != wish.kind || (!wish.region.empty() && wish.region != region.id)) continue;
      const double micros = type.price * region.price_factor * 1e6 / 1000;  // of a gigabyte
      out.push_back(volume_offer("sim", type.id, region.id, static_cast<Micros>(micros + 0.5)));
      out.back().billing.unit_s = options_.billing_unit_s;
      out.back().billing.minimum_s = options_.billing_minimum_s;
      if (wish.region.empty()) break;  // a rehearsed script may leave the region to its provider's settings
    }
  return out;
}

// A volume is live once it exists, and is never lost.
Result<Machine> Cloud::create_volume(const CreateRequest& request, std::int64_t late_us) {
  Box box;
  for (const Type& type : volume_types())
    for (const Region& region : regions())
      if (volume_in(request).kind == type.id && request.offer.region == region.id) box.place = {&type, &region, false};
  if (!box.place.type)
    return make_error(ErrorKind::invalid, fmt::format("the simulated cloud has no offer '{}'", request.offer.id),
                      "kinds: ssd, shared");
  if (dice_.chance(options_.faults.refuse, "refuse", static_cast<std::uint64_t>(counts.calls))) {
    ++counts.refused;
    return nothing_left(box.place);
  }
  box.id = fmt::format("{}{}", id_prefix, boxes_.size() + 1);
  box.tag = request.tag;
  box.token = request.token;
  box.is_volume = true;
  box.shared = volume_in(request).shared;
  box.price_micros_per_hour = request.offer.disk_micros(request.disk_bytes);
  box.asked_us = now_us();
  box.landed_us = box.live_us = box.asked_us + late_us;
  const Dice own = dice_.of(box.id);
  box.shown_us = box.landed_us + static_cast<std::int64_t>(own.unit("shown") * options_.visibility_lag_ms * 1000);
  box.forgotten = own.chance(options_.forgets, "forgotten");
  ++counts.created;
  boxes_.push_back(std::move(box));
  Machine made = view(boxes_.back());
  made.tag = request.tag;  // as of a machine, without visibility lag
  made.state = MachineState::pending;
  return made;
}

// How old the state is that this call returns: an ended machine may still look alive, never the reverse.
std::int64_t Cloud::stale_us() {
  double most = static_cast<double>(options_.visibility_lag_ms) * 1000;
  auto age = static_cast<std::int64_t>(most * dice_.unit("stale", static_cast<std::uint64_t>(counts.calls)));
  return dice_.chance(0.3, "is stale", static_cast<std::uint64_t>(counts.calls)) ? age : 0;
}

Machine Cloud::view(const Box& box) {
  const std::int64_t now = now_us(), seen = now - stale_us();
  Machine m;
  m.id = box.id;
  const bool gone = box.end_us() && seen >= box.end_us();
  if (!gone && box.end_us() && now >= box.end_us()) ++counts.stale_views;
  if (now < box.shown_us || (gone && box.forgotten)) return m;
  m.tag = box.tag;
  m.created_wall_us = box.landed_us;
  m.expires_wall_us = box.expires_us;
  m.channel.argv_prefix = {"sim"};
  m.channel.directory = "/sim/" + box.id;
  const bool before = !box.before.empty() && seen < box.stopped_us;
  m.details.set("region", box.place.region->id);
  m.details.set("type", before ? box.before.back().place.type->id : box.place.type->id);
  if (box.notice_us && now >= box.notice_us) m.notice_wall_us = box.announced_us;
  if (!box.is_volume) m.price_micros_per_hour = price_at(box, seen);
  m.state = gone                                             ? MachineState::gone
            : box.terminated_us && seen >= box.terminated_us ? MachineState::terminating
            : now < box.live_us                              ? MachineState::pending
                                                             : MachineState::live;
  return m;
}

std::vector<Box>::iterator Cloud::locate(const std::string& id) {
  std::size_t number = 0;
  const char* digits = id.data() + std::min(id.size(), id_prefix.size());
  std::from_chars(digits, id.data() + id.size(), number);
  bool known = number >= 1 && number <= boxes_.size() && boxes_[number - 1].id == id;
  return known ? boxes_.begin() + static_cast<std::ptrdiff_t>(number - 1) : boxes_.end();
}

void Cloud::use(const std::string& id, std::int64_t until_us) {
  auto it = locate(id);
  if (it != boxes_.end() && it->alive(now_us())) it->busy_until_us = std::max(it->busy_until_us, until_us);
}

const Box* Cloud::find(const std::string& id) const {
  auto it = const_cast<Cloud*>(this)->locate(id);
  return it == boxes_.end() ? nullptr : &*it;
}

Machine Cloud::describe(const std::string& id) {
  if (auto it = locate(id); it != boxes_.end()) return view(*it);
  Machine unknown;
  unknown.id = id;
  return unknown;
}

std::vector<Machine> Cloud::list(const std::string& tag_prefix) {
  std::vector<Machine> out;
  for (const Box& box : boxes_) {
    if (!box.tag.starts_with(tag_prefix)) continue;
    Machine m = view(box);
    if (!m.tag.empty() && m.state != MachineState::gone) out.push_back(std::move(m));
  }
  return out;
}

Result<> Cloud::terminate(const std::string& id) {
  auto it = locate(id);
  const std::int64_t now = now_us();
  const auto call = static_cast<std::uint64_t>(counts.calls);
  if (it == boxes_.end() || it->terminated_us || (it->end_us() && now >= it->end_us())) return success();
  // Terminating a machine that is not visible yet does nothing and succeeds, as for an unknown machine.
  if (now < it->shown_us) {
    ++counts.unseen_terminates;
    return success();
  }
  if (const Box* user = it->is_volume ? user_of(*it) : nullptr)
    return make_error(ErrorKind::state, fmt::format("the volume {} is in use by {}", id, user->id),
                      "release that machine first");
  if (dice_.chance(options_.faults.terminate_lies, "lie", call)) {
    ++counts.lies;
    return success();
  }
  bool slow = dice_.chance(options_.faults.terminate_slow, "slow", call);
  if (slow) ++counts.slow;
  std::int64_t most = slow ? options_.slow_terminate_ms : options_.shutdown_ms;
  it->terminated_us = now;
  it->gone_us = now + 1000 * dice_.between(most / 2, most, "shutdown", call);
  return success();
}

// The machine stops at once, and becomes live after a new start-up time. On-demand prices are constant, so the cost of
// the past period is final.
Result<Machine> Cloud::resize(const std::string& id, const std::string& type) {
  auto it = locate(id);
  const std::int64_t now = now_us();
  if (it == boxes_.end() || it->terminated_us || !it->alive(now)) {
    Error e = make_error(ErrorKind::state, fmt::format("the machine '{}' no longer exists", id), "rent another one");
    e.http_status = 404;
    return e;
  }
  Box& box = *it;
  if (type == box.place.type->id) return view(box);
  OfferParts place;
  for (const OfferParts& one : all_places())
    if (type == one.type->id && one.region == box.place.region && !one.spot) place = one;
  if (!place.type)
    return make_error(ErrorKind::invalid, fmt::format("the simulated cloud has no type '{}'", type),
                      "`rille offers` lists them");
  if (box.place.spot)
    return make_error(ErrorKind::invalid, "a spot machine cannot be stopped or resized",
                      "rent it with spot = false, or rent another type instead");
  if (has_none(place)) {
    ++counts.refused;
    return nothing_left(place);
  }
  Stint was;
  was.place = box.place;
  was.price_micros_per_hour = box.price_micros_per_hour;
  was.from_us = box.live_us;
  was.to_us = std::max(now, box.live_us);
  box.before.push_back(was);
  box.place = place;
  box.price_micros_per_hour = market_.price_micros_per_hour(place, now);
  box.stopped_us = now;
  box.live_us = was.to_us + 1000 * (options_.shutdown_ms + options_.provisioning_ms / 2);
  ++counts.resized;
  return view(box);
}

// One point per hour for each spot place that matches the query.
std::vector<PricePoint> Cloud::price_history(const OfferQuery& query, std::int64_t since_us) const {
  std::vector<PricePoint> out;
  for (std::int64_t at = since_us - since_us % hour_us; at <= now_us(); at += hour_us)
    for (const OfferParts& place : all_places()) {
      if (!place.spot || at < 0 || !offer_of(place).matches(query)) continue;
      PricePoint point;
      point.type = place.type->id;
      point.zone = place.region->id;
      point.from_wall_us = at;
      point.micros_per_hour = market_.price_micros_per_hour(place, at);
      out.push_back(std::move(point));
    }
  return out;
}

// The spot price is set anew each hour of the machine's life; the on-demand price is constant.
Micros Cloud::price_at(const Box& box, std::int64_t at_us) const {
  if (!box.place.spot || at_us < box.live_us) return box.price_micros_per_hour;
  std::int64_t hour = (at_us - box.live_us) / hour_us;
  return hour ? market_.price_micros_per_hour(box.place, box.live_us + hour * hour_us) : box.price_micros_per_hour;
}

// The bill from live_us to the earliest of termination, preemption, expiry, idle limit and `until_us`. A started
// billing unit counts in full.
Micros Cloud::bill_micros(const Box& box, std::int64_t until_us) const {
  std::int64_t end = earliest({box.terminated_us, box.lost_us, box.expires_us, box.idle_us()});
  if (!end || end > until_us) end = until_us;
  const std::int64_t unit_us = options_.billing_unit_s * 1'000'000;
  const auto billed_us = [&](std::int64_t us) {
    us = std::max(us, options_.billing_minimum_s * 1'000'000);
    return (us + unit_us - 1) / unit_us * unit_us;
  };
  Micros sum = 0;
  for (const Stint& was : box.before)
    if (const std::int64_t to = std::min(was.to_us, end); to > was.from_us)
      sum += cost_micros(was.price_micros_per_hour, billed_us(to - was.from_us) / 1000);
  if (end <= box.live_us) return sum;
  const std::int64_t used_us = billed_us(end - box.live_us);
  for (std::int64_t from_us = 0; from_us < used_us; from_us += hour_us)
    sum += cost_micros(price_at(box, box.live_us + from_us), std::min(hour_us, used_us - from_us) / 1000);
  return sum;
}

std::vector<Bill> Cloud::bills(const BillQuery& query) const {
  std::vector<Bill> out;
  for (const Box& box : boxes_) {
    const std::int64_t end_us = box.end_us();
    bool over = end_us && now_us() >= end_us;
    bool named = std::find(query.machines.begin(), query.machines.end(), box.id) != query.machines.end();
    bool tagged = !query.tag.empty() && box.tag.starts_with(query.tag) && (!over || end_us >= query.since_us);
    if (!named && !tagged) continue;
    Bill bill;
    bill.machine_id = box.id;
    bill.tag = box.tag;
    bill.from_us = box.landed_us;
    bill.to_us = over ? end_us : 0;
    bill.micros = bill_micros(box, now_us());
    bill.final = over;
    out.push_back(std::move(bill));
  }
  return out;
}

Micros Cloud::bill_micros() const {
  Micros sum = 0;
  for (const Box& box : boxes_) sum += bill_micros(box, now_us());
  return sum;
}

int Cloud::alive() const {
  return static_cast<int>(std::count_if(boxes_.begin(), boxes_.end(), [&](const Box& b) { return b.alive(now_us()); }));
}

int Cloud::preempted() const {
  return static_cast<int>(
      std::count_if(boxes_.begin(), boxes_.end(), [&](const Box& b) { return b.preempted(now_us()); }));
}

int Cloud::escaped() const {
  return static_cast<int>(std::count_if(boxes_.begin(), boxes_.end(), [&](const Box& b) {
    return b.notice_us && b.terminated_us >= b.notice_us && b.terminated_us < b.lost_us;
  }));
}

int Cloud::volumes() const {
  return static_cast<int>(
      std::count_if(boxes_.begin(), boxes_.end(), [&](const Box& b) { return b.is_volume && b.alive(now_us()); }));
}

std::map<std::string, int> Cloud::made() const {
  std::map<std::string, int> out;
  for (const Box& box : boxes_) ++out[box.tag];
  return out;
}

}  // namespace rille::provider::sim
