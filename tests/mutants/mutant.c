/* Reads the environment before main; a library that is loaded later has a switch of its own. */
#include "tests/mutants/mutant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_MUTANTS 65536

static unsigned char none[MOST_MUTANTS];
int mutant_active;
unsigned char *mutant_reached = none;

__attribute__((constructor(101))) static void mutant_start(void)
{
    const char *number = getenv("MUTANT"), *path = getenv("MUTANTS_REACHED");
    mutant_active = number ? atoi(number) : 0;
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *reached = mmap(NULL, MOST_MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (reached != MAP_FAILED)
        mutant_reached = reached;
    close(file);
}
