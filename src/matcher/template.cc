#include "matcher/template.h"
