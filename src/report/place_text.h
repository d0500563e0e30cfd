// report/place_text.h: a place in the sources as people are told it.
//
//   /data/good/model.py:61:41     a folder that is still there: an editor opens it
//   model.py:61:41 (v1)           of a revision, whose files lay in a folder that is gone
#pragma once

#include <string>

#include "record/location.h"
#include "record/provenance.h"

namespace opguard {

// "" for a place that is not known. The column only where the whole expression is known.
std::string place_text(const Provenance& provenance, const Location& at);

}  // namespace opguard
