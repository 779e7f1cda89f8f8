#include "stoker/storage/s3/upload.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/s3/listing.h"

namespace stoker::storage::s3 {
namespace {

constexpr std::size_t kFirstPart = 16 << 20;
constexpr std::size_t kPartsBeforeGrowth = 1000;
constexpr std::size_t kMostOnTheWay = 4;
constexpr auto kGrace = std::chrono::seconds(2);

// Tags are XML text, and quotes are part of them.
std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

Upload::Upload(std::shared_ptr<Session> session, Place place)
    : session_(std::move(session)), place_(std::move(place)) {}

Upload::~Upload() {
  abort();
}

std::size_t Upload::part_bytes() const noexcept {
  return kFirstPart << (tags_.size() + on_the_way_.size()) / kPartsBeforeGrowth;
}

void Upload::write(std::span<const std::byte> bytes) {
  total_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t room = part_bytes() - buffer_.size();
    const std::size_t some = std::min(room, bytes.size());
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), some);
    bytes = bytes.subspan(some);
    if (buffer_.size() == part_bytes()) send_part();
  }
}

// Ctrl-C lets this request end, within kGrace: an upload whose id did not arrive cannot be aborted.
HttpReply Upload::begin() {
  Interruption* const user = interruption_in_force();
  std::optional<std::chrono::steady_clock::time_point> raised_at;
  Interruption patient([&] {
    if (user == nullptr || !user->is_raised()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!raised_at) raised_at = now;
    return now - *raised_at > kGrace;
  });
  const InterruptionScope scope(&patient);
  return session_->write({.method = HttpRequest::Method::post, .place = place_, .query = "uploads="});
}

void Upload::send_part() {
  if (id_.empty()) {
    const HttpReply reply = begin();
    id_ = text_of_element(reply.body, "UploadId");
    if (id_.empty()) {
      throw Error(ErrorKind::corrupt, fmt::format("cannot write `{}`: the store gives no id for the upload",
                                                  address_of(place_.bucket, place_.key)));
    }
  }
  if (on_the_way_.size() == kMostOnTheWay) wait_for_oldest();
  const std::size_t number = tags_.size() + on_the_way_.size() + 1;
  Session::Writing writing{.method = HttpRequest::Method::put,
                           .place = place_,
                           .query = fmt::format("partNumber={}&uploadId={}", number, encode_query(id_)),
                           .body = std::move(buffer_)};
  buffer_.clear();
  on_the_way_.push_back(std::async(
      std::launch::async, [session = session_, writing = std::move(writing), interruption = interruption_in_force()] {
        const InterruptionScope interruptible(interruption);
        return session->write(writing).etag;
      }));
}

void Upload::wait_for_oldest() {
  std::future<std::string> oldest = std::move(on_the_way_.front());
  on_the_way_.pop_front();
  while (oldest.wait_for(kAskEvery) != std::future_status::ready) check_interruption();
  tags_.push_back(oldest.get());
}

void Upload::finish() {
  if (id_.empty()) {
    (void)session_->write({.method = HttpRequest::Method::put, .place = place_, .body = std::move(buffer_)});
    return;
  }
  if (!buffer_.empty()) send_part();
  while (!on_the_way_.empty()) wait_for_oldest();
  std::string list =
      "<CompleteMultipartUpload "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (std::size_t i = 0; i < tags_.size(); ++i)
    list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, xml_text(tags_[i]));
  list += "</CompleteMultipartUpload>";
  try {
    (void)session_->write({.method = HttpRequest::Method::post,
                           .place = place_,
                           .query = "uploadId=" + encode_query(id_),
                           .body = std::move(list)});
  } catch (const Error& error) {
    // The answer of an earlier try was lost: the upload is complete, and its id is not known any more.
    if (error.kind() != ErrorKind::not_found || session_->find(place_).bytes != total_bytes_) throw;
  }
  id_.clear();
}

void Upload::abort() noexcept {
  const InterruptionScope uninterrupted(nullptr);
  for (std::future<std::string>& part : on_the_way_) part.wait();  // a part that comes later would stay
  on_the_way_.clear();
  if (id_.empty()) return;
  try {
    (void)session_->write(
        {.method = HttpRequest::Method::remove, .place = place_, .query = "uploadId=" + encode_query(id_)});
  } catch (const Error&) {
    // The store is away. Its rule for incomplete uploads, if it has one,
    // removes the parts.
  }
  id_.clear();
}

}  // namespace stoker::storage::s3
