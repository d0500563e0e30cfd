// CUPTI has a stack of ids for each thread, and only the thread itself can push onto it. Ours is
// there before CUPTI listens, and theirs catches up:
//
//   thread A    push 12, push 13        CUPTI does not listen yet
//   thread B    give_ids_to(CUPTI)      B's ids are given; epoch 1
//   thread A    push 14                 A's epoch is another: 12, 13 and 14 are given
//   thread A    pop                     14 leaves both stacks
//
// The epoch tells what this CUPTI was given from what one before it was. Counterexample: a launch
// of A's between the second line and the third. CUPTI knows no id for it.
#include "inject/thread_ids.h"

#include <atomic>

namespace opguard {
namespace {

// An operator within an operator within a hook...: rarely more than five. Deeper ones are counted,
// their launches belong to the deepest kept.
constexpr uint32_t kMost = 128;

struct Ids {
  uint64_t ids[kMost];
  uint32_t depth = 0;  // pushed; may be more than kMost
  uint32_t given = 0;  // of these, known to CUPTI
  uint32_t epoch = 0;  // to which CUPTI
};

thread_local Ids t_ids;
std::atomic<const cupti::Functions*> g_functions{nullptr};
std::atomic<uint32_t> g_epoch{0};

// How many of the pushed ids have a place.
uint32_t kept(const Ids& own) { return own.depth < kMost ? own.depth : kMost; }

// What this thread's stack has, and CUPTI's for this thread has not.
void give(Ids& own) {
  const cupti::Functions* call = g_functions.load(std::memory_order_acquire);
  if (!call) return;
  uint32_t epoch = g_epoch.load(std::memory_order_relaxed);
  if (own.epoch != epoch) {
    own.epoch = epoch;
    own.given = 0;
  }
  for (; own.given < kept(own); ++own.given) call->push(cupti::kCustom2, own.ids[own.given]);
}

}  // namespace

void push_id(uint64_t id) {
  Ids& own = t_ids;
  if (own.depth < kMost) own.ids[own.depth] = id;
  ++own.depth;
  give(own);
}

void pop_id() {
  Ids& own = t_ids;
  if (own.depth == 0) return;
  --own.depth;
  const cupti::Functions* call = g_functions.load(std::memory_order_acquire);
  if (!call || own.epoch != g_epoch.load(std::memory_order_relaxed)) return;
  if (own.given > kept(own)) {
    uint64_t last = 0;
    call->pop(cupti::kCustom2, &last);
    --own.given;
  }
}

uint64_t current_id() {
  const Ids& own = t_ids;
  return own.depth ? own.ids[kept(own) - 1] : 0;
}

void give_ids_to(const cupti::Functions* functions) {
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  g_functions.store(functions, std::memory_order_release);
  give(t_ids);
}

}  // namespace opguard
