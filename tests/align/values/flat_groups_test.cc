// Names of flat buffers from the names of what they hold, against og1 of the whole.
#include "align/values/flat_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "align/builder.h"

namespace opguard::test {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 29;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ x >> 32;
}

// H of one row of 8-byte lanes, as docs/record-format.md has it; g_0 is the constant of
// python/opguard/shards.py.
uint64_t flat_hash(const std::vector<uint64_t>& lanes) {
  constexpr uint64_t kFactor = (0xe220a8397b1dcdafull & ~7ull) | 5;
  uint64_t h = 0, power = 1;
  for (uint64_t lane : lanes) h += mix(lane) * power, power *= kFactor;
  return h;
}

// A float32 tensor of two elements a lane.
S tensor(const std::string& name, const std::vector<uint64_t>& lanes) {
  S slot = in(1, name);
  slot.shape = {int64_t(2 * lanes.size())};
  return slot;
}

class FlatGroups : public ::testing::Test {
 protected:
  const std::vector<uint64_t> a_ = {11, 22, 33}, b_ = {44}, c_ = {55, 66};

  std::vector<ValueKey> names(std::vector<S> slots, const std::vector<std::vector<uint64_t>>& lanes,
                              EventKind kind = EventKind::optimizer) {
    LogBuilder log;
    log.add({.boundary = "o", .slots = std::move(slots), .kind = kind});
    for (size_t i = 0; i < lanes.size(); ++i) log.log().slots.edit()[i].flat = flat_hash(lanes[i]);
    return opguard::FlatGroups(log.log()).of(log.log().events[0]);
  }
};

TEST_F(FlatGroups, InOrderAndInTheOpposite) {
  const auto found =
      names({tensor("grad:a", a_), tensor("grad:b", b_), tensor("grad:c", c_)}, {a_, b_, c_});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], value_key(flat_hash({11, 22, 33, 44, 55, 66}), 12, "float32"));
  EXPECT_EQ(found[1], value_key(flat_hash({55, 66, 44, 11, 22, 33}), 12, "float32"));
}

TEST_F(FlatGroups, EachListIsOneOfItsOwn) {
  const auto found = names(
      {tensor("param:a", a_), tensor("grad:a", b_), tensor("param:b", b_), tensor("grad:b", c_)},
      {a_, b_, b_, c_});
  ASSERT_EQ(found.size(), 4u);
  for (const auto& lanes : {std::vector<uint64_t>{11, 22, 33, 44}, {44, 55, 66}})
    EXPECT_NE(std::find(found.begin(), found.end(),
                        value_key(flat_hash(lanes), 2 * lanes.size(), "float32")),
              found.end());
}

TEST_F(FlatGroups, LanesOfAnotherWidthDoNotCombine) {
  S odd = tensor("grad:b", b_);
  odd.shape = {3};  // lanes of 4 bytes
  EXPECT_TRUE(names({tensor("grad:a", a_), odd}, {a_, b_}).empty());
  EXPECT_TRUE(names({tensor("grad:a", a_)}, {a_}).empty());
}

// As many as an optimizer has, so that lists are told apart by sorting.
TEST_F(FlatGroups, LongListsAreToldApart) {
  std::vector<S> slots;
  std::vector<std::vector<uint64_t>> lanes;
  std::vector<uint64_t> params, grads;
  for (uint64_t i = 0; i < 20; ++i) {
    const std::string name = "w" + std::to_string(i);
    lanes.push_back({100 + i});
    slots.push_back(tensor("param:" + name, lanes.back()));
    params.push_back(100 + i);
    lanes.push_back({200 + i});
    slots.push_back(tensor("grad:" + name, lanes.back()));
    grads.push_back(200 + i);
  }
  const auto found = names(slots, lanes);
  ASSERT_EQ(found.size(), 4u);
  for (const auto& list : {params, grads})
    EXPECT_NE(std::find(found.begin(), found.end(), value_key(flat_hash(list), 40, "float32")),
              found.end());
}

}  // namespace
}  // namespace opguard::test
