#include "reading/columns.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "record/sample.h"

namespace opguard {
namespace {

using Logs = std::vector<ProcessLog>;

std::shared_ptr<const Logs> samples(std::initializer_list<uint32_t> counts) {
  auto logs = std::make_shared<Logs>();
  for (uint32_t count : counts) {
    TempDir dir;
    LogWriter writer;
    write_sample(writer, dir.path(), count, 7);
    writer.close();
    std::string error;
    EXPECT_TRUE(
        read_log(dir.path() + "/rank3-1763700000000000000-4711.log", logs->emplace_back(), error))
        << error;
  }
  return logs;
}

const Column& column(const LogTable& table, std::string_view name) {
  for (const Column& c : table.columns())
    if (c.name == name) return c;
  ADD_FAILURE() << "no column " << name;
  return table.columns()[0];
}

std::vector<std::string> texts(const LogTable& table, std::string_view name) {
  const Column& c = column(table, name);
  const Dictionary& dictionary = table.dictionary(c);
  std::vector<std::string> found;
  table.for_rows(0, table.size(), [&](const Row& row) {
    auto key = c.value(row);
    found.push_back(key ? dictionary.values[dictionary.codes[row.process][*key]] : "-");
  });
  return found;
}

TEST(Columns, NamesAreTakenOnce) {
  for (TableRows rows : {TableRows::events, TableRows::records}) {
    std::map<std::string, int> names;
    for (const Column& c : columns_of(rows)) {
      EXPECT_EQ(++names[c.name], 1) << c.name;
      EXPECT_EQ(c.source != nullptr, c.type == ColumnType::text) << c.name;
    }
  }
}

// Every window of rows, over logs with and without records and events without slots.
TEST(Columns, RowsOfEveryWindow) {
  auto logs = samples({9, 0, 1, 14});
  for (TableRows rows : {TableRows::events, TableRows::records}) {
    const LogTable table(logs, rows);
    struct Key {
      uint32_t process;
      uint64_t event;
      std::optional<Slot> slot;
      bool operator==(const Key&) const = default;
    };
    std::vector<Key> all;
    for (uint32_t p = 0; p < logs->size(); ++p)
      for (uint64_t e = 0; e < (*logs)[p].events.size(); ++e) {
        const Event event = (*logs)[p].events[e];
        if (rows == TableRows::events) all.push_back({p, e, {}});
        for (uint32_t s = 0; rows == TableRows::records && s < event.slot_count; ++s)
          all.push_back({p, e, (*logs)[p].slots[event.first_slot + s]});
      }
    ASSERT_EQ(table.size(), all.size());
    for (uint64_t begin = 0; begin <= all.size(); ++begin)
      for (uint64_t end = begin; end <= all.size(); ++end) {
        std::vector<Key> seen;
        table.for_rows(begin, end, [&](const Row& r) {
          EXPECT_EQ(r.at, (*logs)[r.process].events[r.event]);
          seen.push_back({r.process, r.event, r.slot ? std::optional(*r.slot) : std::nullopt});
        });
        ASSERT_EQ(seen, std::vector<Key>(all.begin() + begin, all.begin() + end));
      }
  }
}

TEST(Columns, TextsOfSeveralLogsShareADictionary) {
  const LogTable table(samples({4, 5}), TableRows::events);
  EXPECT_EQ(table.dictionary(column(table, "boundary")).values.size(), 3u);
  std::vector<std::string> expected;
  for (int i : {0, 1, 2, 3, 0, 1, 2, 3, 4})
    expected.push_back("attention.softmax:q7k" + std::to_string(i % 3));
  EXPECT_EQ(texts(table, "boundary"), expected);
  EXPECT_EQ(texts(table, "node"),
            (std::vector<std::string>{"-", "MulBackward0", "-", "MulBackward0", "-", "MulBackward0",
                                      "-", "MulBackward0", "-"}));
  EXPECT_EQ(texts(table, "location"), std::vector<std::string>(9, "-"));
}

TEST(Columns, PlacesOfBoundaries) {
  auto logs = std::make_shared<Logs>(*samples({4}));
  (*logs)[0].locations["attention.softmax:q7k1"] = {"", "", "/x/a.py", 7, 0, 0, 0, "", "", ""};
  (*logs)[0].locations["attention.softmax:q7k2"] = {"", "a.py", "/x/a.py", 8, 0, 0, 0, "", "", ""};
  const LogTable table(logs, TableRows::events);
  EXPECT_EQ(texts(table, "location"), (std::vector<std::string>{"-", "/x/a.py:7", "a.py:8", "-"}));
}

TEST(Columns, WhatIsUnknownHasNoValue) {
  auto logs = samples({200});
  const LogTable table(logs, TableRows::records);
  std::map<std::string, int> unknown, known;
  table.for_rows(0, table.size(), [&](const Row& r) {
    for (const char* name : {"h", "m", "flat", "pattern", "storage", "version"})
      ++(column(table, name).value(r) ? known : unknown)[name];
    const bool unreadable = r.slot->flags & kUnreadable;
    EXPECT_EQ(column(table, "h").value(r).has_value(), !unreadable);
    EXPECT_EQ(column(table, "pattern").value(r).has_value(),
              !unreadable && (r.slot->flags & kMask));
  });
  for (const char* name : {"h", "m", "flat", "pattern", "storage"}) {
    EXPECT_GT(known[name], 0) << name;
    EXPECT_GT(unknown[name], 0) << name;
  }
  EXPECT_EQ(unknown["version"], 0);
}

TEST(Columns, TextsAreValidUtf8) {
  auto logs = std::make_shared<Logs>(*samples({1}));
  const std::string replaced = "\xef\xbf\xbd";
  for (auto [raw, valid] : std::map<std::string, std::string>{
           {"plain", "plain"},
           {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
           {"a\xff-b", "a" + replaced + "-b"},
           {"cut\xe2\x82", "cut" + replaced + replaced},
           {"\xc0\x80", replaced + replaced},
           {"\xed\xa0\x80", replaced + replaced + replaced},
           {"\xf4\x90\x80\x80", replaced + replaced + replaced + replaced}}) {
    (*logs)[0].strings[(*logs)[0].events[0].boundary] = raw;
    const LogTable table(logs, TableRows::events);
    EXPECT_EQ(texts(table, "boundary"), std::vector<std::string>{valid});
  }
}

TEST(Columns, ManyThreadsMayAsk) {
  const LogTable table(samples({300}), TableRows::records);
  std::vector<std::thread> threads;
  std::vector<const Dictionary*> seen(4);
  for (size_t i = 0; i < seen.size(); ++i)
    threads.emplace_back([&, i] { seen[i] = &table.dictionary(column(table, "boundary")); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(seen, std::vector<const Dictionary*>(4, seen[0]));
}

}  // namespace
}  // namespace opguard
