/* Policies and devices, step by step: each section of a file in tests/steps is a case. With an
 * argument only those of the file of that name. */
#include <stddef.h>

#include "tests/support/steps.h"

int main(int argument_count, char **arguments)
{
    return steps_main(argument_count < 2 ? NULL : arguments[1]);
}
