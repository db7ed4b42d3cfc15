#include "tests/support/plugin_rig.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn void plugin_rig_fail(const char *file, int line, const char *condition)
{
    printf("%s:%d: not true: %s\n", file, line, condition);
    fflush(stdout);
    _exit(1);
}

/* A library that lies at `place` as seen from the folder of this program. */
static void *library(const char *place)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    PLUGIN_CHECK(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, place);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        printf("%s\n", dlerror());
    PLUGIN_CHECK(handle);
    return handle;
}

static void find(void *handle, const char *name, void *pointer)
{
    void *address = dlsym(handle, name);
    if (!address)
        printf("%s\n", dlerror());
    PLUGIN_CHECK(address);
    memcpy(pointer, &address, sizeof address);
}

static void load(struct plugin_rig *rig)
{
    struct stand_in *(*driver)(void);
    find(library("../cuda_stand_in/libcuda.so.1"), "stand_in", &driver);
    rig->driver = driver();
    void *plugin = library("../../liballocrig_torch.so");
#define X(name) find(plugin, "allocrig_" #name, &rig->name);
    PLUGIN_RIG_FUNCTIONS(X)
#undef X
}

static _Noreturn void child(const char *const *settings, const char *errors,
                            void (*body)(const struct plugin_rig *rig))
{
    struct plugin_rig rig;
    for (; *settings; settings++) {
        char *text = strdup(*settings), *sign = strchr(text, '=');
        *sign = '\0';
        setenv(text, sign + 1, 1);
        free(text);
    }
    if (errors) {
        int file = open(errors, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        PLUGIN_CHECK(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
        close(file);
    }
    load(&rig);
    body(&rig);
    exit(0);
}

int plugin_rig_run(const char *const *settings, const char *errors,
                   void (*body)(const struct plugin_rig *rig))
{
    int status = 0;
    fflush(stdout);
    fflush(stderr);
    pid_t process = fork();
    if (process == 0)
        child(settings, errors, body);
    if (process < 0 || waitpid(process, &status, 0) != process)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *plugin_rig_text(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return text;
}
