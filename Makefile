# allocrig. `make help` lists the targets. Build outputs go to .build/<variant>/.
VARIANT ?= release
CC      ?= gcc
B       := .build/$(VARIANT)

WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-unknown-warning-option
CFLAGS_release := -O2 -g
CFLAGS_san     := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g -fsanitize=thread
CFLAGS_debug   := -O0 -g
ifeq ($(origin CFLAGS_$(VARIANT)),undefined)
$(error unknown VARIANT "$(VARIANT)": use release, debug, san or tsan)
endif
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE $(WARN) $(CFLAGS_$(VARIANT)) $(CFLAGS) -I.
LIBS    := -l:libjansson.a -l:libzstd.a -l:libz.a -lm -ldl -lpthread

LIB_SRC := $(shell find allocators workloads sim bench -name '*.c' -not -path 'bench/cli/*' -not -path 'bench/micro/*' -not -path '*/skeleton/*')
CLI_SRC := $(wildcard bench/cli/*.c)
SUP_SRC := $(wildcard tests/support/*.c)
TEST_SRC := $(wildcard tests/unit/test_*.c tests/property/test_*.c tests/golden/test_*.c)
OBJ     = $(patsubst %.c,$(B)/%.o,$(1))
TESTS   := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))

## all: build the program and leave the link ./allocrig
all: $(B)/allocrig
	@ln -sfn $(B)/allocrig allocrig

$(B)/flags: FORCE
	@mkdir -p $(B); echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' > $@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(B)/liballocrig.a: $(call OBJ,$(LIB_SRC))
	@rm -f $@
	ar rcs $@ $^

$(B)/allocrig: $(call OBJ,$(CLI_SRC)) $(B)/liballocrig.a
	$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $^ $(LIBS)

$(B)/tests/%: $(B)/tests/%.o $(call OBJ,$(SUP_SRC)) $(B)/liballocrig.a
	$(CC) $(ALL_CFLAGS) -rdynamic -o $@ $^ -lcmocka $(LIBS)

## tests: build the test programs
tests: $(TESTS)

## help: list the targets
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## clean: remove what was built
clean:
	rm -rf .build allocrig

FORCE:
.PHONY: all tests help clean FORCE
.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
