// report_page and list_page: one file of HTML with its data, and the style and the script that show them.
#include <fmt/format.h>

#include "bindings/cli/report/report.hpp"
#include "bindings/cli/report/texts.hpp"
#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"

namespace rille::cli {

namespace embedded {  // made by the build from the files beside this one
extern const char report_page_css[], report_values_js[], report_charts_js[], report_timeline_js[], report_compare_js[],
    report_page_js[], report_list_js[], report_live_js[], report_start_js[];
}  // namespace embedded

namespace {

// What a content security policy calls this style or script.
std::string policy_hash(std::string_view text) {
  const Digest digest = sha256(text);
  return "'sha256-" + to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

std::string title_of_page(const Value::Array& reports) {
  std::string title;
  for (const Value& r : reports) {
    const Value& run = r["run"];
    title += (title.empty() ? "" : " and ") + fmt::format("{} {}", run.text("name"), run.text("id"));
    if (reports.size() == 1) title += ", " + run.text("state");
  }
  return title;
}

using Parts = std::initializer_list<const char*>;

// `live`: where the page finds newer data; "": it is a file.
std::string html_page(const std::string& title, Parts parts, const Value& data, const std::string& live,
                      const char* before = "") {
  const std::string style = embedded::report_page_css;
  std::string script;
  for (const char* part : parts) script += part;
  if (!live.empty()) script += embedded::report_live_js;
  script += embedded::report_start_js;
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; script-src {}{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body{}>\n{}"
      "<main id=\"page\"><noscript><p>This page is drawn by its own script, which is switched off here. "
      "<code>rille show RUN</code> prints the same facts.</p></noscript></main>\n"
      "<script type=\"application/json\" id=\"report\">{}</script>\n<script>{}</script>\n</body>\n</html>\n",
      policy_hash(style), policy_hash(script), live.empty() ? "" : "; connect-src 'self'", in_html(title), style,
      live.empty() ? "" : " data-live=\"" + in_html(live) + "\"", before, json_in_html(data), script);
}

}  // namespace

std::string report_page(const Value::Array& reports, const std::string& live) {
  const Parts parts = {embedded::report_values_js, embedded::report_charts_js, embedded::report_timeline_js,
                       embedded::report_compare_js, embedded::report_page_js};
  return html_page(title_of_page(reports), parts, Value(reports), live,
                   live.empty() ? "" : "<nav class=\"up\"><a href=\"../\">All runs</a></nav>\n");
}

std::string list_page(const Value& list, const std::string& live) {
  const Parts parts = {embedded::report_values_js, embedded::report_charts_js, embedded::report_list_js};
  return html_page("Rille", parts, list, live);
}

}  // namespace rille::cli
