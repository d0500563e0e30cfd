// prove/rendezvous.h: whether the ranks come to their ends where a send waits for its receiver.
//
//   both ranks   send(x); recv(y)              each waits in send: they rely on one that does not
//   both ranks   isend(x); recv(y); wait       no send waits
//   rank 0       send(x); rank 1: recv(y)      they meet
//
// Whether a send waits is up to the backend and the size of the message. A plan that relies on one
// that does not may work in a test, and hang at full size.
//
// Values play no part, so the traces are enough. Counterexample: what isend() has begun is waited
// for by wait(), which a trace has not. So isend() and irecv() count as never waiting.
#pragma once

#include <vector>

#include "prove/simulation.h"
#include "prove/trace.h"

namespace opguard::proving {

// Where each rank waits for ever, at a send or at what comes behind one; none where all end.
std::vector<Statement> stuck_in_sends(const std::vector<Trace>& ranks);

}  // namespace opguard::proving
