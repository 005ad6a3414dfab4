# tinygpt - `make` prints the targets. Builds go to build/; nothing else is written.
#
# Sources are found by folder, so that a new file is a new file and nothing more:
#   src/**/*.c            once; src/ops/*/<op>.c a second time with TG_REAL=double (the oracle)
#   src/**/*.simd.h       once per ISA, as C, with -DTG_ISA=<isa> -DTG_ISA_<ISA>
#   app/*.c               the program            test/unit/*.c  one executable each (cmocka)
# Files *_wasm*.c belong to the WebAssembly modules alone, os_posix*.c to all other builds alone.

SHELL      := /bin/bash
MAKEFLAGS  += -j$(shell nproc)
CC         ?= gcc
ifeq ($(origin CC),default)
CC         := gcc
endif
AR         ?= ar
BUILD      ?= build
# V=1 shows the commands.
Q          := $(if $(V),,@)
PREFIX     ?= /usr/local
OPT        ?= -O3
WARN       := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes
VERSION    := $(shell sed -n 's/.*TG_VERSION_TEXT *"\(.*\)".*/\1/p' include/tinygpt.h)
SOVERSION  := $(firstword $(subst ., ,$(VERSION)))
ARCH       := $(shell $(CC) -dumpmachine | sed 's/-.*//')

# Contraction off: fused multiply-add only where the code says so. Traps and errno are not used.
BASE       := $(OPT) -g -fPIC -pthread -ffp-contract=off -fno-math-errno -fno-trapping-math \
              -fvisibility=hidden -Iinclude -Isrc -I$(BUILD)/gen -MMD -MP $(WARN) $(EXTRA)
C11        := -std=c11
LDLIBS     := -pthread

ISAS_x86_64  := scalar avx2 avx512
ISAS_aarch64 := scalar neon
ISAS         := $(or $(ISAS_$(ARCH)),scalar)
FLAGS_scalar :=
FLAGS_avx2   := -mavx2 -mfma -mf16c
FLAGS_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma -mf16c -mprefer-vector-width=512
FLAGS_neon   :=
upper         = $(shell echo $(1) | tr a-z A-Z)

WASM_C   := $(sort $(wildcard src/*/*_wasm*.c))
ALL_SRC  := $(filter-out src/ops/kernel_table.c,$(sort $(shell find src -name '*.c')))
SRC      := $(filter-out $(WASM_C),$(ALL_SRC))
OPS      := $(sort $(wildcard src/ops/*/*.c))
SIMD     := $(sort $(shell find src -name '*.simd.h'))
SIMD_OPS := $(sort $(notdir $(patsubst %.simd.h,%,$(wildcard src/ops/*/*.simd.h))))

OBJ      := $(SRC:%.c=$(BUILD)/%.o) $(OPS:%.c=$(BUILD)/%.f64.o) \
            $(foreach i,$(ISAS),$(SIMD:%.h=$(BUILD)/%.$(i).o) $(BUILD)/src/ops/kernel_table.$(i).o)
APP_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard app/*.c)))
LIB      := $(BUILD)/libtinygpt.a
SHARED   := $(BUILD)/libtinygpt.so.$(VERSION)
PROGRAM  := $(BUILD)/tinygpt
UNIT     := $(patsubst test/unit/%.c,$(BUILD)/test/%,$(sort $(wildcard test/unit/*.c)))
TESTS    := $(UNIT) $(BUILD)/test/op_test

.DEFAULT_GOAL := help
.PHONY: help demo build wasm test-wasm lib test-quick test test-long asan ubsan tsan bench gen check fmt install clean setup FORCE

help:
	@sed -n 's/^## //p' Makefile

## make demo         build, train a small model on text, write a story   (DATA=FILE to use your own)
## make build        the program build/tinygpt and the library
## make wasm         the WebAssembly modules build/wasm/tinygpt-{scalar,simd}.wasm (clang-19, lld-19)
## make install      PREFIX=/usr/local  header, static and shared library, pkg-config file, program
## make test-quick   unit tests and op tests, under a minute, no set-up
## make test         everything that gates a change (installs what it needs: tools/setup.sh)
## make test-long    fuzzing, 10,000 kills, long trainings, all sanitizers
## make test-wasm    the modules against the native library, bit for bit (Node 20)
## make check        format, layer rule, generated files, warnings as errors with gcc and clang
## make bench        this machine against PyTorch (bench/peers)
## make gen          regenerate docs/ops.md and docs/levers.md
## make clean        remove build/

build: $(PROGRAM) $(SHARED)
lib: $(LIB) $(SHARED)

demo: $(PROGRAM)
	@tools/demo.sh $(PROGRAM) "$(DATA)"

# ------------------------------------------------------------------------------------- compiling
$(BUILD)/gen/simd_ops.h: FORCE
	@mkdir -p $(@D)
	@for op in $(SIMD_OPS); do echo "TG_SIMD_OP($$op)"; done > $@.new
	@cmp -s $@.new $@ || mv $@.new $@; rm -f $@.new

$(BUILD)/%.f64.o: %.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) $(BASE) -DTG_REAL=double -DTG_REAL_IS_DOUBLE -c $< -o $@

$(BUILD)/app/%.o: app/%.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) $(BASE) -c $< -o $@

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) $(BASE) -c $< -o $@

define isa_rules
$(BUILD)/%.simd.$(1).o: %.simd.h
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(CC) -std=gnu11 $$(BASE) -Wno-pedantic -DTG_ISA=$(1) -DTG_ISA_$$(call upper,$(1)) $$(FLAGS_$(1)) -x c -c $$< -o $$@
$(BUILD)/src/ops/kernel_table.$(1).o: src/ops/kernel_table.c $(BUILD)/gen/simd_ops.h
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(CC) -std=gnu11 $$(BASE) -Wno-pedantic -DTG_ISA=$(1) -DTG_ISA_$$(call upper,$(1)) $$(FLAGS_$(1)) -c $$< -o $$@
endef
$(foreach i,$(ISAS),$(eval $(call isa_rules,$(i))))

$(LIB): $(OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(OBJ)

$(SHARED): $(OBJ)
	$(Q)$(CC) -shared $(EXTRA) -Wl,-soname,libtinygpt.so.$(SOVERSION) -o $@ $(OBJ) $(LDLIBS)
	@ln -sf $(notdir $@) $(BUILD)/libtinygpt.so.$(SOVERSION)
	@ln -sf $(notdir $@) $(BUILD)/libtinygpt.so

$(PROGRAM): $(APP_OBJ) $(LIB)
	$(Q)$(CC) $(EXTRA) -o $@ $(APP_OBJ) $(LIB) $(LDLIBS)

# ----------------------------------------------------------------------------------- WebAssembly
# The core without app/, freestanding: libc_wasm.c and src/base/wasm/ stand in for the C library.
# Both modules are the scalar class, since vec_scalar.h is four vectors of four, which -msimd128
# turns into v128. All of tinygpt.h is exported, by its visibility.
WASM_CC     ?= clang-19
WASM_LD     ?= wasm-ld-19
WASM        := $(BUILD)/wasm
WASM_BASE   := --target=wasm32 -nostdlibinc -isystem src/base/wasm $(OPT) -ffp-contract=off \
               -fno-math-errno -fno-trapping-math -mbulk-memory -mnontrapping-fptoint \
               -fvisibility=hidden -Iinclude -Isrc -I$(BUILD)/gen -MMD -MP $(WARN)
WASM_LINK   := --no-entry --export-dynamic --gc-sections --stack-first -z stack-size=1048576 --strip-all
WASM_SCALAR :=
WASM_SIMD   := -msimd128
WASM_SRC    := $(filter-out src/base/os_posix%,$(ALL_SRC))
WASM_OBJ    := $(WASM_SRC:%.c=%.o) $(OPS:%.c=%.f64.o) $(SIMD:%.h=%.o) src/ops/kernel_table.o

define wasm_rules
$(WASM)/$(1)/src/base/libc_wasm.o: src/base/libc_wasm.c
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(WASM_CC) $$(C11) $$(WASM_BASE) $(2) -fno-builtin -c $$< -o $$@
$(WASM)/$(1)/%.f64.o: %.c
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(WASM_CC) $$(C11) $$(WASM_BASE) $(2) -DTG_REAL=double -DTG_REAL_IS_DOUBLE -c $$< -o $$@
$(WASM)/$(1)/%.simd.o: %.simd.h
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(WASM_CC) -std=gnu11 $$(WASM_BASE) $(2) -Wno-pedantic -DTG_ISA=scalar -DTG_ISA_SCALAR -x c -c $$< -o $$@
$(WASM)/$(1)/src/ops/kernel_table.o: src/ops/kernel_table.c $(BUILD)/gen/simd_ops.h
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(WASM_CC) -std=gnu11 $$(WASM_BASE) $(2) -Wno-pedantic -DTG_ISA=scalar -DTG_ISA_SCALAR -c $$< -o $$@
$(WASM)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(WASM_CC) $$(C11) $$(WASM_BASE) $(2) -c $$< -o $$@
$(WASM)/tinygpt-$(1).wasm: $(addprefix $(WASM)/$(1)/,$(WASM_OBJ))
	$$(Q)$$(WASM_LD) $$(WASM_LINK) -o $$@ $$^
endef
$(eval $(call wasm_rules,scalar,$(WASM_SCALAR)))
$(eval $(call wasm_rules,simd,$(WASM_SIMD)))

wasm: $(WASM)/tinygpt-scalar.wasm $(WASM)/tinygpt-simd.wasm

$(BUILD)/test/wasm_native: test/wasm/native.c $(LIB)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) $(BASE) $< -o $@ $(LIB) $(LDLIBS)

test-wasm: wasm $(BUILD)/test/wasm_native
	node test/wasm/train.mjs $(BUILD)

# --------------------------------------------------------------------------------------- testing
$(BUILD)/test/op_test: test/op_test.c $(LIB)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) $(BASE) $< -o $@ $(LIB) $(LDLIBS)

$(BUILD)/test/%: test/unit/%.c $(LIB)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) -D_GNU_SOURCE $(BASE) -Iapp -Wno-missing-prototypes $< $(filter %.o,$^) -o $@ $(LIB) -lcmocka -lm $(LDLIBS)

$(filter $(BUILD)/test/test_app_%,$(UNIT)): $(filter-out $(BUILD)/app/main.o,$(APP_OBJ))

setup:
	@tools/setup.sh

test-quick: $(PROGRAM) $(TESTS)
	@tools/run_tests.sh quick $(BUILD)

test: setup
	@$(MAKE) --no-print-directory build tests
	@tools/run_tests.sh full $(BUILD)

test-long: setup
	@$(MAKE) --no-print-directory build tests
	@tools/run_tests.sh long $(BUILD)

.PHONY: tests
tests: $(TESTS) $(SHARED)

asan ubsan:
	@$(MAKE) --no-print-directory BUILD=build/asan OPT=-O1 EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=all -DTG_DEBUG" build tests

tsan:
	@$(MAKE) --no-print-directory BUILD=build/tsan OPT=-O1 EXTRA="-fsanitize=thread -DTG_DEBUG" build tests

# -------------------------------------------------------------------------------------- checking
check:
	@tools/check.sh

gen: $(BUILD)/gen_docs
	@for page in ops levers; do $< $$page > docs/$$page.md; done

$(BUILD)/gen_docs: tools/gen_docs.c $(LIB)
	$(Q)$(CC) $(C11) $(BASE) $< -o $@ $(LIB) $(LDLIBS)

bench: $(PROGRAM)
	@bench/peers/run.sh

install: build
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/
	install -m 644 include/tinygpt.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(LIB) $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(SHARED) $(DESTDIR)$(PREFIX)/lib/
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(PREFIX)/lib/libtinygpt.so.$(SOVERSION)
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(PREFIX)/lib/libtinygpt.so
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: tinygpt' 'Description: trains and runs small GPTs' \
	  'Version: $(VERSION)' 'Libs: -L$${prefix}/lib -ltinygpt' 'Libs.private: -pthread' \
	  'Cflags: -I$${prefix}/include' > $(DESTDIR)$(PREFIX)/lib/pkgconfig/tinygpt.pc

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
