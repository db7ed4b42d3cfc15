#!/bin/bash
# Writes the C source of a main() for the test programs FOLDER/NAME..., which are all linked into one
# file: the name under which it is started selects the program. The Makefile compiles the main() of
# each as NAME_main(); one without runs the cases of tests/FOLDER/NAME.c.
# Usage: tests/support/programs.sh FOLDER/NAME...
set -eu
echo '#include <stdio.h>'
echo '#include <string.h>'
echo 'int test_run(const char *file);'
printf 'int %s_main(int, char **) __attribute__((weak));\n' "${@##*/}"
cat <<'END'
static const struct program {
    const char *name, *file;
    int (*start)(int, char **);
} programs[] = {
END
printf '%s\n' "$@" | sed 's,\(.*\)/\(.*\),    {"\2"\, "tests/&.c"\, \2_main}\,,'
cat <<'END'
};
int main(int count, char **arguments)
{
    const char *slash = strrchr(arguments[0], '/'), *name = slash ? slash + 1 : arguments[0];
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].name, name) == 0)
            return programs[i].start ? programs[i].start(count, arguments) : test_run(programs[i].file);
    fprintf(stderr, "%s is not the name of a test program\n", name);
    return 2;
}
END
