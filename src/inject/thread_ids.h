// inject/thread_ids.h: the ids pushed on each thread, and CUPTI's own stack kept equal to them.
#pragma once

#include <cstdint>

#include "inject/cupti_api.h"

namespace opguard {

void push_id(uint64_t id);
void pop_id();
// The innermost of this thread, 0 if there is none.
uint64_t current_id();

// From now on CUPTI knows them too; null: no more. Ids pushed before are given to it when their
// thread next pushes, of this thread at once.
void give_ids_to(const cupti::Functions* functions);

}  // namespace opguard
