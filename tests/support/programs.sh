#!/bin/bash
# Writes the C source of a main() for the test programs NAME..., which are all linked into one file:
# the name under which it is started selects the program. Usage: tests/support/programs.sh NAME...
# The Makefile compiles the main() of each as NAME_main().
set -eu
echo '#include <stdio.h>'
echo '#include <string.h>'
printf 'int %s_main(int, char **);\n' "$@"
cat <<'END'
static const struct program {
    const char *name;
    int (*start)(int, char **);
} programs[] = {
END
printf '%s\n' "$@" | sed 's/.*/    {"&", &_main},/'
cat <<'END'
};
int main(int count, char **arguments)
{
    const char *slash = strrchr(arguments[0], '/'), *name = slash ? slash + 1 : arguments[0];
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].name, name) == 0)
            return programs[i].start(count, arguments);
    fprintf(stderr, "%s is not the name of a test program\n", name);
    return 2;
}
END
