/* The plug-in as PyTorch and CuPy call it: tests/steps/plugin. */
#include "tests/support/steps.h"

int main(void)
{
    return steps_main("plugin");
}
