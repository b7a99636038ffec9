// Answers of object stores, byte for byte. The first byte chooses the store, the second what it is asked for; then come
// the answers to one request after another, parted by \x1e. Whatever they are: an error says why and holds no key, a
// list holds names and sizes that can be, and a range is no longer than asked for.
#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/loop/virtual_time.hpp"
#include "runtime/core/store/objects/object_store.hpp"
#include "runtime/core/store/objects/url.hpp"
#include "tests/fuzz/sessions.hpp"
#include "tests/fuzz/told_web.hpp"

using namespace rille;
using namespace rille::objects;

namespace {

constexpr const char* secret = "c2VjcmV0IG9mIHRoZSBrZXk=";
constexpr std::size_t range_bytes = 10, taken_bytes_max = 1 << 20;

std::unique_ptr<ObjectStore> store_of(std::uint8_t choice, const std::string& host, Loop& loop) {
  for (const char* key :
       {"AWS_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_ID", "TENCENTCLOUD_SECRET_ID", "HUAWEICLOUD_SDK_AK"})
    setenv(key, "id", 1);
  for (const char* key : {"AWS_SECRET_ACCESS_KEY", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "TENCENTCLOUD_SECRET_KEY",
                          "HUAWEICLOUD_SDK_SK", "AZURE_STORAGE_KEY"})
    setenv(key, secret, 1);
  setenv("STORAGE_EMULATOR_HOST", ("http://" + host).c_str(), 1);
  // An address cannot choose where Azure's and Google's tokens go.
  const Value settings = Value().set("azure", Value().set("endpoints", Value().set("blob", Value("http://" + host))));
  StoreSetup setup{loop, settings, [host](const std::string& to, const std::string& port) -> Result<> {
                     if (host == to + ":" + port) return success();
                     return make_error(ErrorKind::denied, "no other server is asked");
                   }};
  const std::string at = "/?endpoint=http://" + host + "&region=r";
  const std::string urls[] = {"s3://bucket" + at,  "oss://bucket" + at,       "cos://bucket-1" + at,
                              "obs://bucket" + at, "az://account/container/", "gs://bucket/"};
  Result<std::unique_ptr<ObjectStore>> store =
      open_store(parse_object_url(urls[choice % std::size(urls)]).value(), setup);
  fuzz_check(store.ok(), "a store of such an address is opened");
  return std::move(store).value();
}

template <class T>
bool judge(const Result<T>& result) {
  if (result) return true;
  const Error& e = result.error();
  fuzz_check(!e.message.empty() && e.kind != ErrorKind::internal, "a refusal says why");
  fuzz_check(e.summary().find(secret) == std::string::npos, "an error holds no key");
  return false;
}

void check_object(const ObjectInfo& info) {
  fuzz_check(check_key(info.key).ok() && info.size_bytes >= 0, "an object has a name and a size");
}

void ask(ObjectStore& store, Loop& loop, std::uint8_t choice) {
  const CancelToken token;
  const auto wait = [&loop](auto task) { return run_blocking(loop, std::move(task)); };
  switch (choice % 7) {
    case 0: {
      ListRequest request;
      request.delimiter = choice & 64 ? "/" : "";
      (void)judge(wait(list_all(
          store, request,
          [](const ListPage& page) -> Result<> {
            for (const ObjectInfo& info : page.objects) check_object(info);
            for (const std::string& prefix : page.prefixes) fuzz_check(check_key(prefix).ok(), "a prefix is a name");
            return success();
          },
          token)));
      return;
    }
    case 1: {
      const auto info = wait(store.head("k", token));
      if (judge(info)) fuzz_check(info->size_bytes >= 0, "a size is not negative");
      return;
    }
    case 2: {
      std::size_t taken = 0;
      GetRequest request;
      if (choice & 64) request.offset = 3, request.length = range_bytes;
      const auto got = wait(store.get(
          "k", request,
          [&taken](std::string_view piece) -> Result<> {
            taken += piece.size();
            if (taken <= taken_bytes_max) return success();
            return make_error(ErrorKind::io, "the disk is full");
          },
          token));
      fuzz_check(!(choice & 64) || taken <= range_bytes, "a range is no longer than asked for");
      if (judge(got) && !(choice & 64))
        fuzz_check(got->size_bytes == static_cast<std::int64_t>(taken), "what is told is what was read");
      return;
    }
    case 3: {
      PutRequest request;
      request.if_absent = choice & 64;
      (void)judge(wait(store.put("k", {"some bytes", {}, 0}, request, token)));
      return;
    }
    case 4: {
      const auto upload = wait(store.begin_parts("k", "text/plain", token));
      if (!judge(upload)) return;
      const auto part = wait(store.put_part("k", *upload, 1, {"some bytes", {}, 0}, token));
      if (judge(part)) (void)judge(wait(store.complete_parts("k", *upload, {*part}, {}, token)));
      else (void)judge(wait(store.abort_parts("k", *upload, token)));
      return;
    }
    case 5: (void)judge(wait(store.remove("k", token))); return;
    default: {
      GetRequest request;
      request.if_match = "\"v1\"";
      (void)judge(wait(store.get(
          "k", request, [](std::string_view) { return success(); }, token)));
    }
  }
}

std::string answer(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static std::unique_ptr<ToldWeb> web;
  static int used = 0;
  if (used++ % ToldWeb::inputs_max == 0) web = std::make_unique<ToldWeb>();
  web->begin(std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
  VirtualTime time;
  const std::unique_ptr<Loop> loop = Loop::create_virtual(time).value();
  const auto store = store_of(data[0], web->host(), *loop);
  ask(*store, *loop, data[1]);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string etag = "ETag: \"v1\"\r\nLast-Modified: Fri, 27 Nov 2026 01:02:03 GMT\r\n";
  const std::string error = "<Error><Code>SlowDown</Code><Message>m</Message><Region>x</Region></Error>";
  const std::string row =
      "<Key>a%20b</Key><Size>3</Size><ETag>\"v\"</ETag>"
      "<LastModified>2026-11-27T01:02:03.000Z</LastModified>";
  const std::string list = "<ListBucketResult><EncodingType>url</EncodingType><Contents>" + row + "</Contents>" +
                           "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>";
  const std::string more =
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
      "<NextMarker>a</NextMarker></ListBucketResult>";
  const std::string last = "<IsTruncated>false</IsTruncated></ListBucketResult>";
  const std::string azure =
      "<EnumerationResults><Blobs><Blob><Name>a</Name><Properties>"
      "<Content-Length>3</Content-Length><Etag>v</Etag></Properties></Blob>"
      "<BlobPrefix><Name>p/</Name></BlobPrefix></Blobs><NextMarker/></EnumerationResults>";
  const std::string google = R"({"items":[{"name":"a","size":"3","generation":"7","updated":"2026-11-27T01:02:03Z"}],)"
                             R"("prefixes":["p/"],"nextPageToken":"t"})";
  const std::string object = R"({"name":"k","size":"10","generation":"7","contentType":"text/plain"})";
  std::vector<std::string> out;
  for (const char* store : {"0", "1", "2", "3"}) {
    const std::string s = store;
    out.push_back(s + '1' + answer("200 OK", "", list + more) + '\x1e' + answer("200 OK", "", list + last));
    out.push_back(s + '2' + answer("200 OK", etag, ""));
    out.push_back(s + 'd' + answer("206 Partial Content", etag + "Content-Range: bytes 3-12/20\r\n", "0123456789"));
    out.push_back(s + '3' + answer("200 OK", etag, "0123456789"));
    out.push_back(s + '4' + answer("503 No", "Retry-After: 1\r\n", error) + '\x1e' + answer("200 OK", etag, ""));
    out.push_back(s + '5' + answer("200 OK", "", "<R><UploadId>u</UploadId></R>") + '\x1e' +
                  answer("200 OK", etag, "") + '\x1e' + answer("200 OK", "", "<R><ETag>e</ETag></R>"));
    out.push_back(s + '6' + answer("301 Moved", "x-amz-bucket-region: y\r\n", error) + '\x1e' +
                  answer("204 No Content", "", ""));
  }
  out.push_back("41" + answer("200 OK", "", azure));
  out.push_back("51" + answer("200 OK", "", google) + '\x1e' + answer("200 OK", "", "{}"));
  out.push_back("52" + answer("200 OK", "", object));
  out.push_back("54" + answer("200 OK", "", object));
  out.push_back("55" + answer("200 OK", "", "<R><UploadId>u</UploadId></R>") + '\x1e' + answer("200 OK", etag, "") +
                '\x1e' + answer("200 OK", "", "<R><ETag>e</ETag></R>"));
  out.push_back("56" +
                answer("404 No", "", R"({"error":{"code":404,"message":"m","errors":[{"reason":"notFound"}]}})"));
  return out;
}

std::vector<std::string> fuzz_words() {
  return {"\x1e",
          "\r\n\r\n",
          "<Contents>",
          "</Contents>",
          "<Key>",
          "<Size>",
          "-1",
          "99999999999999999999",
          "<NextContinuationToken>",
          "<IsTruncated>true",
          "Content-Range: bytes ",
          "Content-Length: ",
          "ETag: ",
          "x-goog-generation: ",
          "Date: Fri, 27 Nov 2026 01:02:03 GMT\r\n",
          "<Code>RequestTimeTooSkewed</Code>",
          "<![CDATA[",
          "]]>",
          "&#0;",
          "%00",
          "%2e%2e%2f",
          "\"items\":",
          "\"size\":",
          "\"generation\":"};
}
