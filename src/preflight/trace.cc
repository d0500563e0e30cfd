#include "preflight/trace.h"
