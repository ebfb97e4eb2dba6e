// SPDX-License-Identifier: BSL-1.0
#include "summary.hpp"

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>
#include <utility>

namespace corpus {

namespace {

using nlohmann::ordered_json;

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setfill('0') << std::setw(16) << value;
  return std::move(out).str();
}

ordered_json to_json(const std::vector<word_count>& counts) {
  auto all = ordered_json::array();
  for (const auto& [word, count] : counts) all.push_back({{"word", word}, {"count", count}});
  return all;
}

ordered_json to_json(const std::string& path, const file_facts& facts) {
  ordered_json one{{"path", path}};
  switch (facts.what) {
    case file_facts::kind::unreadable: one["unreadable"] = facts.reason; return one;
    case file_facts::kind::binary: one["binary"] = true; break;
    case file_facts::kind::text:
      one["lines"] = facts.lines;
      one["words"] = facts.words;
      break;
  }
  one["bytes"] = facts.bytes;
  one["hash"] = hexadecimal(facts.hash);
  one["top"] = to_json(facts.counts);
  return one;
}

// 1234567 as 1 234 567.
std::string grouped(std::uint64_t value) {
  auto digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), " ");
  return digits;
}

void print_row(std::ostream& out, const std::string& name, std::uint64_t value, const std::string& remark = {}) {
  out << "  " << std::left << std::setw(12) << name << std::right << std::setw(16) << grouped(value) << remark << '\n';
}

void print_bars(std::ostream& out, const std::vector<word_count>& counts) {
  constexpr std::uint64_t longest = 40;
  for (const auto& [word, count] : counts) {
    const auto length = std::max<std::uint64_t>(1, count * longest / counts.front().second);
    out << "  " << std::left << std::setw(24) << word.substr(0, 24) << std::right << std::setw(12) << grouped(count)
        << "  " << std::string(length, '#') << '\n';
  }
}

}  // namespace

void summary::add(const std::string& path, file_facts facts) {
  for (const auto& [word, count] : facts.counts) counts_[word] += count;
  if (facts.counts.size() > top_) {
    facts.counts.resize(top_);
    facts.counts.shrink_to_fit();
  }
  files_.insert_or_assign(path, std::move(facts));
}

void summary::add_failure(const std::string& path, const std::string& reason) {
  file_facts facts;
  facts.what = file_facts::kind::unreadable;
  facts.reason = reason;
  add(path, std::move(facts));
}

void summary::add(const std::vector<unreadable>& directories) {
  directories_.insert(directories_.end(), directories.begin(), directories.end());
}

summary::totals summary::sum() const {
  totals all;
  for (const auto& [path, facts] : files_) {
    all.text += facts.what == file_facts::kind::text ? 1 : 0;
    all.binary += facts.what == file_facts::kind::binary ? 1 : 0;
    all.bytes += facts.bytes;
    all.lines += facts.lines;
    all.words += facts.words;
  }
  return all;
}

std::vector<word_count> summary::top_words() const {
  std::vector<word_count> all(counts_.begin(), counts_.end());
  sort_by_frequency(all);
  if (all.size() > top_) all.resize(top_);
  return all;
}

// Files of the same size and hash; empty ones are equal for no interesting reason.
std::vector<summary::duplicate_group> summary::duplicates() const {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::string>> by_content;
  for (const auto& [path, facts] : files_) {
    if (facts.what != file_facts::kind::unreadable && facts.bytes > 0)
      by_content[{facts.hash, facts.bytes}].push_back(path);
  }
  std::vector<duplicate_group> groups;
  for (auto& [content, paths] : by_content) {
    if (paths.size() > 1) groups.push_back({content.first, content.second, std::move(paths)});
  }
  const auto wasted = [](const duplicate_group& group) { return group.bytes * (group.paths.size() - 1); };
  std::ranges::sort(groups, [&](const duplicate_group& a, const duplicate_group& b) {
    return wasted(a) != wasted(b) ? wasted(a) > wasted(b) : a.paths.front() < b.paths.front();
  });
  return groups;
}

std::vector<unreadable> summary::unread() const {
  auto all = directories_;
  for (const auto& [path, facts] : files_) {
    if (facts.what == file_facts::kind::unreadable) all.push_back({path, facts.reason});
  }
  std::ranges::sort(all, {}, &unreadable::path);
  return all;
}

std::vector<std::string> summary::binary_files() const {
  std::vector<std::string> all;
  for (const auto& [path, facts] : files_) {
    if (facts.what == file_facts::kind::binary) all.push_back(path);
  }
  return all;
}

std::string summary::json() const {
  const auto all = sum();
  ordered_json document;
  document["totals"] = {
      {"files", files_.size()}, {"text", all.text},   {"binary", all.binary}, {"unreadable", unread().size()},
      {"bytes", all.bytes},     {"lines", all.lines}, {"words", all.words},   {"distinct_words", counts_.size()}};
  document["top_words"] = to_json(top_words());
  auto& groups = document["duplicates"] = ordered_json::array();
  for (const auto& each : duplicates())
    groups.push_back({{"hash", hexadecimal(each.hash)}, {"bytes", each.bytes}, {"paths", each.paths}});
  auto& directories = document["unreadable_directories"] = ordered_json::array();
  for (const auto& each : directories_) directories.push_back({{"path", each.path}, {"reason", each.reason}});
  auto& files = document["files"] = ordered_json::array();
  for (const auto& [path, facts] : files_) files.push_back(to_json(path, facts));
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string summary::table() const {
  constexpr std::size_t shown = 5;
  const auto all = sum();
  const auto groups = duplicates();
  const auto failures = unread();
  std::ostringstream out;
  print_row(out, "files", files_.size());
  print_row(out, "text", all.text);
  print_row(out, "binary", all.binary);
  print_row(out, "unreadable", failures.size());
  print_row(out, "bytes", all.bytes);
  print_row(out, "lines", all.lines);
  print_row(out, "words", all.words, "  (" + grouped(counts_.size()) + " distinct)");
  print_row(out, "duplicates", groups.size(), "  groups of equal files");
  for (const auto& each : groups | std::views::take(shown)) {
    out << "    " << each.paths.size() << " x " << grouped(each.bytes) << " bytes: " << each.paths.front() << ", "
        << each.paths[1] << (each.paths.size() > 2 ? ", ..." : "") << '\n';
  }
  if (all.binary > 0) out << "binary, lines and words not counted:\n";
  for (const auto& path : binary_files() | std::views::take(shown)) out << "    " << path << '\n';
  if (all.binary > shown) out << "    and " << all.binary - shown << " more, in the JSON\n";
  if (!failures.empty()) out << "not read:\n";
  for (const auto& each : failures | std::views::take(shown)) out << "    " << each.path << ": " << each.reason << '\n';
  if (failures.size() > shown) out << "    and " << failures.size() - shown << " more, in the JSON\n";
  out << "most frequent words:\n";
  print_bars(out, top_words());
  return std::move(out).str();
}

}  // namespace corpus
