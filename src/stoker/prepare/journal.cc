// Layout, in the machine's byte order:
//   magic, plan
//   record: head (fixed), rows, text, checksum of all three
#include "stoker/prepare/journal.h"

#include <cstring>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/storage/source.h"

namespace stoker::prepare {
namespace {

constexpr std::string_view kMagic = "STKJRNL1";
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

struct Head {
  std::uint64_t cursor, shard, shard_bytes, seek_bytes, shard_done, rows, text_bytes;
};

std::string path_of(const std::string& folder) {
  return fmt::format("{}/{}", folder, kJournal);
}

// Length of what is sound at the start of `bytes`: the head and whole records.
std::size_t parse(std::string_view bytes, std::uint64_t plan, std::vector<JournalRecord>* records) {
  const std::size_t start = kMagic.size() + sizeof plan;
  if (bytes.size() < start || !bytes.starts_with(kMagic) ||
      std::memcmp(bytes.data() + kMagic.size(), &plan, sizeof plan) != 0)
    return 0;
  std::size_t at = start;
  while (bytes.size() - at >= sizeof(Head) + sizeof(std::uint64_t)) {
    Head head;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    const std::size_t room = bytes.size() - at - sizeof head - sizeof(std::uint64_t);
    if (head.rows > room / sizeof(JournalRow) || head.text_bytes > room - head.rows * sizeof(JournalRow)) break;
    const std::size_t whole = sizeof head + head.rows * sizeof(JournalRow) + head.text_bytes;
    std::uint64_t sum = 0;
    std::memcpy(&sum, bytes.data() + at + whole, sizeof sum);
    if (hash_text(bytes.substr(at, whole), plan) != sum) break;
    if (records != nullptr) {
      JournalRecord record{head.cursor, head.shard, head.shard_bytes, head.seek_bytes, head.shard_done != 0, {}, {}};
      record.rows.resize(head.rows);
      if (head.rows > 0)
        std::memcpy(record.rows.data(), bytes.data() + at + sizeof head, head.rows * sizeof(JournalRow));
      record.text = bytes.substr(at + sizeof head + head.rows * sizeof(JournalRow), head.text_bytes);
      records->push_back(std::move(record));
    }
    at += whole + sizeof sum;
  }
  return at;
}

std::vector<std::byte> read_all(const std::string& folder) {
  try {
    return storage::read_file(path_of(folder), kMostBytes);
  } catch (const Error&) {
    return {};
  }
}

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::vector<JournalRecord> read_journal(const std::string& folder, std::uint64_t plan) {
  std::vector<JournalRecord> records;
  const std::vector<std::byte> bytes = read_all(folder);
  parse(as_text(bytes), plan, &records);
  return records;
}

Journal::Journal(const std::string& folder, std::uint64_t plan, bool go_on) : plan_(plan) {
  const std::vector<std::byte> there = go_on ? read_all(folder) : std::vector<std::byte>();
  const std::size_t keep = parse(as_text(there), plan, nullptr);
  file_ = os::AppendFile(path_of(folder), keep);
  if (keep != 0) return;
  std::string head(kMagic);
  head.append(reinterpret_cast<const char*>(&plan), sizeof plan);
  file_.append(head);
}

void Journal::add(const JournalRecord& record) {
  const Head head{record.cursor,     record.shard,       record.shard_bytes, record.seek_bytes,
                  record.shard_done, record.rows.size(), record.text.size()};
  std::string out(reinterpret_cast<const char*>(&head), sizeof head);
  out.append(reinterpret_cast<const char*>(record.rows.data()), record.rows.size() * sizeof(JournalRow));
  out += record.text;
  const std::uint64_t sum = hash_text(out, plan_);
  out.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  file_.append(out);
  file_.sync();
}

}  // namespace stoker::prepare
