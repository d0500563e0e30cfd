#include "matcher/match.h"
