#include "preflight/plan.h"
