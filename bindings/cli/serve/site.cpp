#include "bindings/cli/serve/site.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "bindings/cli/report/report.hpp"
#include "bindings/cli/report/texts.hpp"
#include "runtime/core/base/id.hpp"

namespace rille::cli {

namespace {

constexpr std::size_t served_runs_max = 20;
constexpr std::string_view of_run = "/run/", as_json = ".json", bearer = "Bearer ";

net::HttpAnswer text_answer(int status, std::string text) {
  net::HttpAnswer out;
  out.status = status;
  out.body = std::move(text);
  return out;
}

net::HttpAnswer refused_by(const Error& e) {
  return text_answer(e.kind == ErrorKind::invalid ? 404 : 500, plain_text(e.summary()) + "\n");
}

net::HttpAnswer page_answer(std::string page) {
  net::HttpAnswer out;
  out.type = "text/html; charset=utf-8";
  out.body = std::move(page);
  return out;
}

// Takes as long for a wrong token as for the right one, wherever they differ.
bool is_token(std::string_view given, std::string_view token) {
  const Digest a = sha256(given), b = sha256(token);
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// The runs that "ID,ID" names.
Result<std::vector<engine::RunRow>> runs_named(const App& app, std::string_view names) {
  std::vector<engine::RunRow> out;
  while (!names.empty() && out.size() < served_runs_max) {
    const std::size_t end = std::min(names.find(','), names.size());
    RILLE_TRY(engine::RunRow run, app.engine->run(std::string(names.substr(0, end))));
    out.push_back(std::move(run));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  if (out.empty() || !names.empty())
    return make_error(ErrorKind::invalid, fmt::format("a page is of 1 to {} runs", served_runs_max));
  return out;
}

Result<Value> reports_of(const App& app, const std::vector<engine::RunRow>& runs) {
  Value::Array out;
  for (const engine::RunRow& run : runs) {
    RILLE_TRY(Value report, report_of(app, run));
    out.push_back(std::move(report));
  }
  return Value(std::move(out));
}

// Data with their version, or 304 if the page has them.
net::HttpAnswer data_answer(const App& app, const net::RequestHead& head, const std::vector<engine::RunRow>& runs,
                            const std::function<Result<Value>()>& make) {
  const Result<std::string> version = version_of(app, runs);
  if (!version) return refused_by(version.error());
  net::HttpAnswer out;
  out.headers.emplace_back("ETag", *version);
  if (head.header("if-none-match") == *version) {
    out.status = 304;
    return out;
  }
  const Result<Value> data = make();
  if (!data) return refused_by(data.error());
  out.type = "application/json";
  out.body = data->to_json();
  return out;
}

net::HttpAnswer list_answer(const App& app, const net::RequestHead& head, bool data) {
  if (data) return data_answer(app, head, {}, [&] { return list_of(app); });
  const Result<Value> list = list_of(app);
  return list ? page_answer(list_page(*list, "list.json")) : refused_by(list.error());
}

net::HttpAnswer run_answer(const App& app, const net::RequestHead& head, std::string_view names) {
  const bool data = names.ends_with(as_json);
  if (data) names.remove_suffix(as_json.size());
  const Result<std::vector<engine::RunRow>> runs = runs_named(app, names);
  if (!runs) return refused_by(runs.error());
  if (data) return data_answer(app, head, *runs, [&] { return reports_of(app, *runs); });
  Result<Value> reports = reports_of(app, *runs);
  if (!reports) return refused_by(reports.error());
  std::string ids;
  for (const engine::RunRow& run : *runs) ids += (ids.empty() ? "" : ",") + run.id;
  return page_answer(report_page(*reports->as_array(), ids + std::string(as_json)));
}

}  // namespace

net::HttpAnswer Site::answer(const net::RequestHead& head) {
  std::string_view path = head.path, key = head.header("authorization");
  const bool has_key = key.starts_with(bearer) && is_token(key.substr(bearer.size()), token_);
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const bool has_token = is_token(path.substr(1, end - 1), token_);
  if (!has_key && !has_token)
    return text_answer(403, "This address lacks the token: open the one that `rille serve` has printed.\n");
  if (has_token) path.remove_prefix(end);
  if (path.empty()) {
    net::HttpAnswer out = text_answer(307, "");
    out.headers.emplace_back("Location", head.path + "/");
    return out;
  }
  if (path == "/" || path == "/list.json") return list_answer(app_, head, path != "/");
  if (path.starts_with(of_run)) return run_answer(app_, head, path.substr(of_run.size()));
  if (path != "/metrics") return text_answer(404, "There is no such page.\n");
  Result<std::string> text = monitored();
  if (!text) return refused_by(text.error());
  net::HttpAnswer out = text_answer(200, std::move(*text));
  out.type = "text/plain; version=0.0.4; charset=utf-8";
  return out;
}

}  // namespace rille::cli
