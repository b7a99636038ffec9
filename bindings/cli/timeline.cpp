#include "bindings/cli/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bindings/cli/terminal.hpp"
#include "runtime/core/base/money.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::cli {

namespace {

constexpr int bar_columns_min = 10, bar_columns_max = 40;

double seconds(std::int64_t us) { return static_cast<double>(us) / 1e6; }

std::string shown_seconds(double s) { return format_duration_ms(std::llround(s * 1000)); }

Value machine_row(const lease::Lease& l, const lease::Tenure* t, std::int64_t begin_us, std::int64_t now_us) {
  std::int64_t from = t ? t->from_us : l.created_us, to = t && t->to_us ? t->to_us : l.released_us;
  bool last = !t || t->generation == l.generation;
  if (!to || (t && !t->to_us)) to = l.billable() ? now_us : std::max(from, to);
  Value row;
  row.set("kind", "lease").set("key", l.name).set("lease", l.id).set("provider", l.provider);
  row.set("state", last ? l.state : "released").set("attempt", t ? t->generation : l.generation);
  row.set("start_seconds", seconds(from - begin_us)).set("seconds", seconds(to - from));
  if (t) row.set("machine", t->machine_id);
  Micros cost = t ? t->cost(now_us) : 0;
  row.set("cost_micros", cost).set("cost", static_cast<double>(cost) / 1e6);
  const lease::Amounts all = t ? t->costs(now_us) : lease::Amounts();
  if (!lease::only_dollars(all)) row.set("costs", lease::to_value(all));
  if (t && t->unknown()) row.set("unknown_price", true);
  if (last && l.billable()) row.set("under_way", true);
  return row;
}

std::string cost_of(const Value& row) {
  lease::Amounts all{{"USD", row.integer("cost_micros")}};
  if (const Value::Object* costs = row["costs"].as_object()) {
    all.clear();
    for (const auto& [currency, amount] : *costs)
      all[currency] = std::llround((amount.as_number() ? *amount.as_number() : 0) * 1e6);
  }
  return lease::to_string(all) + (row.boolean("unknown_price") ? " + ?" : "");
}

// Draws the row's bar: "   ====  ", or "   ..." while the row is unfinished.
std::string row_bar(const Value& row, double span, int columns) {
  double from = row.number("start_seconds") / span, to = from + row.number("seconds") / span;
  int first = std::clamp(static_cast<int>(from * columns), 0, columns - 1);
  int last = std::clamp(static_cast<int>(std::ceil(to * columns)), first + 1, columns);
  return std::string(static_cast<std::size_t>(first), ' ') +
         std::string(static_cast<std::size_t>(last - first), row.boolean("under_way") ? '.' : '=');
}

}  // namespace

std::vector<Value> timeline(const engine::RunRow& run, const std::vector<Value>& entries,
                            const std::vector<lease::Lease>& leases, std::int64_t now_us) {
  std::vector<Value> rows;
  for (const Value& e : entries) {
    std::int64_t from = e.integer("started_us");
    Value row;
    row.set("kind", e.text("kind")).set("key", e.text("key")).set("state", e.text("state"));
    row.set("attempt", e.integer("attempt")).set("source", e.text("source"));
    row.set("start_seconds", seconds(from - run.created_us));
    bool open = !e["seconds"].as_number();
    row.set("seconds", open ? seconds((run.ended_us ? run.ended_us : now_us) - from) : e.number("seconds"));
    if (open && !run.ended_us) row.set("under_way", true);
    rows.push_back(std::move(row));
  }
  for (const lease::Lease& l : leases) {
    for (const lease::Tenure& t : l.tenures) rows.push_back(machine_row(l, &t, run.created_us, now_us));
    if (l.tenures.empty()) rows.push_back(machine_row(l, nullptr, run.created_us, now_us));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Value& a, const Value& b) {
    return a.number("start_seconds") < b.number("start_seconds");
  });
  return rows;
}

std::string timeline_table(const std::vector<Value>& rows, int columns) {
  bool paid = std::any_of(rows.begin(), rows.end(), [](const Value& r) { return r.text("kind") == "lease"; });
  std::vector<std::vector<std::string>> table{{"KEY", "KIND", "STATE", "TRY", "AT", "TOOK"}};
  if (paid) table[0].emplace_back("COST");
  table[0].emplace_back("WHERE");
  double span = 1e-3;
  for (const Value& r : rows) {
    span = std::max(span, r.number("start_seconds") + r.number("seconds"));
    table.push_back({r.text("key"), r.text("kind"), r.text("state"), fmt::format("{}", r.integer("attempt")),
                     shown_seconds(std::max(0.0, r.number("start_seconds"))),
                     shown_seconds(r.number("seconds")) + (r.boolean("under_way") ? " .." : "")});
    bool machine = r.text("kind") == "lease";
    if (paid) table.back().push_back(machine ? cost_of(r) : "");
    table.back().push_back(machine ? r.text("machine") : r.text("source"));
  }
  std::string plain = format_table(table);
  int width = 0;
  for (std::size_t i = 0; i < plain.size();) {
    std::size_t end = std::min(plain.find('\n', i), plain.size());
    width = std::max(width, static_cast<int>(end - i));
    i = end + 1;
  }
  int room = std::min(bar_columns_max, columns - width - 3);
  if (room < bar_columns_min) return plain;
  table[0].emplace_back("");
  for (std::size_t i = 0; i < rows.size(); ++i) table[i + 1].push_back(row_bar(rows[i], span, room));
  return format_table(table);
}

}  // namespace rille::cli
