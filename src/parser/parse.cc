#include "parser/parse.h"
