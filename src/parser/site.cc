#include "parser/site.h"
