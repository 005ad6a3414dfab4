# SPDX-License-Identifier: Apache-2.0
# tinygpt - `make` prints the targets. Builds go to build/; nothing else is written.
#
# Sources are found by folder, so that a new file is a new file and nothing more:
#   src/**/*.c            once; src/ops/*/<op>.c a second time with TG_REAL=double (the oracle)
#   src/**/*.simd.h       once per ISA, as C, with -DTG_ISA=<isa> -DTG_ISA_<ISA>
#   app/**/*.c            the program            test/unit/*/*.c  one executable each (cmocka)
#   web/dist/*            into the program, if the page is built
# Files *_wasm*.c belong to the WebAssembly modules alone, os_posix*.c to all other builds alone.

SHELL      := /bin/bash
MAKEFLAGS  += -j$(shell nproc)
CC         ?= gcc
ifeq ($(origin CC),default)
CC         := gcc
endif
AR         ?= ar
STRIP      ?= strip
# What was compiled before, in any folder, is not compiled again.
CACHED     := $(shell command -v ccache)
BUILD      ?= build
# V=1 shows the commands.
Q          := $(if $(V),,@)
PREFIX     ?= /usr/local
OPT        ?= -O3
WARN       := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-prototypes -Wno-missing-field-initializers
# Warnings are errors in what the tests build; another compiler may have more of them.
WERROR     ?=
VERSION    := $(shell sed -n 's/.*TG_VERSION_TEXT *"\(.*\)".*/\1/p' include/tinygpt.h)
# While the major version is 0 a minor one may change the binary interface, so it is in the name.
MAJOR      := $(firstword $(subst ., ,$(VERSION)))
SOVERSION  := $(if $(filter 0,$(MAJOR)),0.$(word 2,$(subst ., ,$(VERSION))),$(MAJOR))
ARCH       := $(shell $(CC) -dumpmachine | sed 's/-.*//')

# Contraction off: fused multiply-add only where the code says so. Traps and errno are not used.
BASE       := $(OPT) -g -fPIC -pthread -ffp-contract=off -fno-math-errno -fno-trapping-math \
              -fvisibility=hidden -DTG_UNSTABLE -Iinclude -Isrc -I$(BUILD)/gen -MMD -MP $(WARN) $(WERROR) $(EXTRA) \
              -ffile-prefix-map=$(CURDIR)=.
C11        := -std=c11
LDLIBS     := -pthread $(CHECKED)

ISAS_x86_64  := scalar avx2 avx512
ISAS_aarch64 := scalar neon
ISAS         := $(or $(ISAS_$(ARCH)),scalar)
FLAGS_scalar :=
FLAGS_avx2   := -mavx2 -mfma -mf16c
FLAGS_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma -mf16c -mprefer-vector-width=512
FLAGS_neon   :=
# More flags for all ISAs but scalar.
VECTOR       ?=
$(foreach i,$(filter-out scalar,$(ISAS)),$(eval FLAGS_$(i) += $(VECTOR)))
upper         = $(shell echo $(1) | tr a-z A-Z)

# The native GPU needs the header of WebGPU, which tools/setup.sh fetches; without it the device says
# what is missing.
WEBGPU   := $(wildcard .cache/webgpu/webgpu.h)
GPU_C    := $(wildcard src/backend/webgpu/device/gpu_*.c src/backend/webgpu/device/*/gpu_*.c)
GPU_HERE := $(patsubst %,src/backend/webgpu/device/%.c,gpu_cache self_test/gpu_self_test gpu_layer gpu_tiles \
            $(if $(WEBGPU),gpu_features gpu_native gpu_native_open,gpu_none))

WASM_C   := $(sort $(shell find src -name '*_wasm*.c'))
ALL_SRC  := $(filter-out src/ops/kernel_table.c $(GPU_C),$(sort $(shell find src -name '*.c')))
SRC      := $(filter-out $(WASM_C),$(ALL_SRC)) $(GPU_HERE)
OPS      := $(sort $(wildcard src/ops/*/*.c))
SIMD     := $(sort $(shell find src -name '*.simd.h'))
# A file may have the bodies of several ops.
SIMD_OPS := $(sort $(filter $(notdir $(OPS:.c=)),$(shell sed -n 's/^TG_KERNELS[A-Z_]*.\([a-z0-9_]*\),.*/\1/p' \
              $(SIMD))))

# References in double are for finite differences, which a build with TG_FLOAT_REFS takes none of.
OBJ      := $(SRC:%.c=$(BUILD)/%.o) $(if $(findstring TG_FLOAT_REFS,$(EXTRA)),,$(OPS:%.c=$(BUILD)/%.f64.o)) \
            $(foreach i,$(ISAS),$(SIMD:%.h=$(BUILD)/%.$(i).o) $(BUILD)/src/ops/kernel_table.$(i).o)
APP_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard app/*.c app/*/*.c)))
LIB      := $(BUILD)/libtinygpt.a
PAGE     := $(shell find web/dist -type f 2>/dev/null)
SHARED   := $(BUILD)/libtinygpt.so.$(VERSION)
PROGRAM  := $(BUILD)/tinygpt
UNIT_SRC := $(sort $(wildcard test/unit/*/*.c))
UNIT     := $(patsubst %.c,$(BUILD)/test/%,$(notdir $(UNIT_SRC)))
GPU_TESTS := $(addprefix $(BUILD)/test/,gpu_test models_test merge_test levers_test drop_test)
# Node 24, of the set-up: 64-bit modules and relaxed SIMD.
NODE     := $(or $(wildcard $(CURDIR)/.cache/node24/bin/node),node)
DAWN     := $(wildcard .cache/webgpu/libwebgpu_wrapper.so)
# The text that tests train on, as many bytes as the small books that one trains on by hand.
STORIES  := $(BUILD)/test/stories.txt
TESTS    := $(UNIT) $(patsubst test/fuzz/%.c,$(BUILD)/test/test_%,$(wildcard test/fuzz/fuzz_*.c)) \
            $(BUILD)/test/op_test $(BUILD)/test/simd_test $(if $(WEBGPU),$(GPU_TESTS)) \
            $(if $(DAWN),$(BUILD)/test/libshared.so) $(BUILD)/test/tinygpt_nan $(STORIES)

.DEFAULT_GOAL := help
.PHONY: help demo build wasm test-wasm web web-lib test-web test-e2e lib test-quick test test-long asan ubsan tsan intsan coverage fuzz fuzz-targets bench gallery gen families check fmt install uninstall clean setup FORCE

help:
	@sed -n 's/^## //p' Makefile

## make demo         build, train a small model on text, write a story   (DATA=FILE to use your own)
## make build        the program build/tinygpt and the library
## make wasm         the seven WebAssembly modules build/wasm/tinygpt-*.wasm (clang-19, lld-19, Binaryen)
## make install      PREFIX=/usr/local  program, libraries, header, pkg-config file, manual, completions
## make uninstall    takes away what make install put there
## make test-quick   unit tests and op tests, under a minute, no set-up
## make test         everything that gates a change (installs what it needs: tools/setup.sh)
## make test-long    fuzzing, 10,000 kills, long trainings, all sanitizers
## make test-wasm    the modules against the native library, bit for bit (Node 24)
## make fuzz         libFuzzer over whatever reads files and lines   (FUZZ_SECONDS=60 each, FUZZ_ONLY="tok json")
## make tsan intsan  the tests with several threads, and those of files and text, under more sanitizers
## make coverage     lines and branches of io, tok and saves that the tests reach
## make web-lib      the TypeScript package: web/lib and web/wasm   (npm)
## make web          the page web/dist; the next make build puts it into the program (tinygpt serve)
## make gallery      trains the models that come with the page, where data/gallery lacks one   (Debian's packages)
## make test-web     the package in Node, packed and installed, too
## make test-e2e     the page in Chromium, as people use it; pictures of it in build/screens
## make check        format, layer rule, budgets, generated files, types
## make bench        this machine against PyTorch (bench/peers)
## make gen          regenerate docs/ops.md, docs/levers.md and web/src/lib/abi.gen.ts
## make clean        remove build/

build: $(PROGRAM) $(SHARED)
lib: $(LIB) $(SHARED)

demo: $(PROGRAM)
	@tools/demo.sh $(PROGRAM) "$(DATA)"

# ------------------------------------------------------------------------------------- compiling
# What is compiled in another way is compiled anew.
FLAGS    := $(BUILD)/gen/flags
$(FLAGS): FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(BASE)' > $@.new
	@cmp -s $@.new $@ || mv $@.new $@; rm -f $@.new

$(OBJ) $(APP_OBJ) $(TESTS:%=%.o): $(FLAGS)

$(BUILD)/gen/simd_ops.h: FORCE
	@mkdir -p $(@D)
	@for op in $(SIMD_OPS); do echo "TG_SIMD_OP($$op)"; done > $@.new
	@cmp -s $@.new $@ || mv $@.new $@; rm -f $@.new

# Shaders as lines of C: op tables include them. Line numbers in messages are those of the files.
WGSL     := $(patsubst %,$(BUILD)/gen/%.h,$(patsubst src/%,%,$(sort $(shell find src -name '*.wgsl'))))

$(BUILD)/gen/%.wgsl.h: src/%.wgsl
	@mkdir -p $(@D)
	@{ sed -e 's|^ *//.*||' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n",/' $<; echo NULL; } > $@

# The same for the modules: small, since a page downloads them.
WGSL_SMALL := $(WGSL:$(BUILD)/gen/%=$(BUILD)/gen/small/%)

$(BUILD)/gen/small/%.wgsl.h: src/%.wgsl tools/wgsl_small.awk
	@mkdir -p $(@D)
	@awk -f tools/wgsl_small.awk $< > $@

# And for those of browsers without SIMD, which have no WebGPU either: no shader at all.
WGSL_NONE := $(WGSL:$(BUILD)/gen/%=$(BUILD)/gen/none/%)

$(BUILD)/gen/none/%.wgsl.h: src/%.wgsl
	@mkdir -p $(@D)
	@echo NULL > $@

$(OBJ): | $(WGSL)
# More flags for the folders that read and write files.
CHECKED  ?=
$(foreach d,base dtype io tok chat,$(BUILD)/src/$(d)/%.o) $(patsubst %,$(BUILD)/src/%.o,training/checkpoint engine/session_file load/pack_cache): BASE += $(CHECKED)
$(patsubst %,$(BUILD)/src/backend/webgpu/device/gpu_%.o,features native native_open): BASE += -isystem .cache/webgpu
$(BUILD)/src/training/data/stories_data.o: data/stories.txt

$(BUILD)/%.f64.o: %.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CACHED) $(CC) $(C11) $(BASE) -DTG_REAL=double -DTG_REAL_IS_DOUBLE -c $< -o $@

$(BUILD)/app/%.o: app/%.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CACHED) $(CC) $(C11) $(BASE) -Iapp -c $< -o $@

# The built page, as bytes and a table (tools/embed.py); both empty without it.
$(BUILD)/gen/page.list: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(PAGE) > $@.new
	@cmp -s $@.new $@ || mv $@.new $@; rm -f $@.new

$(BUILD)/gen/page.def: $(BUILD)/gen/page.list $(PAGE) tools/embed.py
	$(Q)$(if $(PAGE),python3 tools/embed.py web/dist $(@D),: > $(@D)/page.bin && : > $@)

$(BUILD)/app/pages.o: BASE += $(if $(WEBGPU),-DTG_BUILT_WITH_WEBGPU)
$(BUILD)/app/server/page_built.o: $(BUILD)/gen/page.def
$(BUILD)/app/server/page_built.o: BASE += -Wa,-I$(BUILD)/gen

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CACHED) $(CC) $(C11) $(BASE) -c $< -o $@

define isa_rules
$(BUILD)/%.simd.$(1).o: %.simd.h
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(CACHED) $$(CC) -std=gnu11 $$(BASE) -Wno-pedantic -Wno-psabi -DTG_ISA=$(1) -DTG_ISA_$$(call upper,$(1)) $$(FLAGS_$(1)) -x c -c $$< -o $$@
$(BUILD)/src/ops/kernel_table.$(1).o: src/ops/kernel_table.c $(BUILD)/gen/simd_ops.h
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(CACHED) $$(CC) -std=gnu11 $$(BASE) -Wno-pedantic -DTG_ISA=$(1) -DTG_ISA_$$(call upper,$(1)) $$(FLAGS_$(1)) -c $$< -o $$@
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
# Nothing there takes finite differences: references are there as float alone (TG_FLOAT_REFS).
# All of tinygpt.h is exported, by its visibility; the memory is imported. A build's name says what
# it is made with: an ISA, then mt for threads, then 64 for addresses of 64 bits.
WASM_BUILDS  := scalar simd relaxed scalar-mt simd-mt relaxed-mt simd-mt-64
WASM_CC      ?= clang-19
WASM_LD      ?= wasm-ld-19
WASM_OPT     := .cache/binaryen/wasm-opt
# What Binaryen does to a module, in 4 s of CPU time: a tenth off, of modules without SIMD more. The
# levels let passes repeat until nothing is left to do; all of -Oz takes three times as long for no
# more. The lowest 1,024 bytes are the end of the stack, so constants fold.
WASM_PASSES  := --optimize-level=2 --shrink-level=2 --low-memory-unused --strip-target-features \
                --duplicate-function-elimination --merge-similar-functions --optimize-instructions \
                --optimize-added-constants --simplify-locals --rse --coalesce-locals --reorder-locals \
                --vacuum --code-folding --merge-blocks --remove-unused-names --remove-unused-brs \
                --precompute-propagate --coalesce-locals --reorder-locals --vacuum
WASM         := $(BUILD)/wasm
# Ops, families and types (of grids: types.def) that are native alone: a module has no room for them,
# or (loss_scale) no use.
blank               := $(subst ,, )
WASM_LACKS_OPS      := loss_scale preference preference_grad delta_net delta_net_grad delta_net_cached attention_spans_grad columns times
WASM_LACKS_FAMILIES := qwen35 nemotron_h gemma4
WASM_LACKS          := src/ops/loss_scale/% src/ops/preference/% src/ops/delta_net/% src/ops/columns/% src/model/families/qwen35.c src/model/families/nemotron_h.c \
                       src/model/families/gemma4.c src/dtype/blocks_grid.c \
                       src/ops/attention_spans/attention_spans_grad%
WASM_BASE    := -nostdlibinc -isystem src/base/wasm -ffp-contract=off -fno-math-errno \
                -fno-trapping-math -mbulk-memory -mnontrapping-fptoint -fvisibility=hidden -DTG_UNSTABLE \
                -DTG_FLOAT_REFS -DTG_NATIVE_PARTS=0 $(foreach op,$(WASM_LACKS_OPS),-DTG_OP_$(op)=TG_OP_COUNT) \
                -I$(BUILD)/gen/web -Iinclude -Isrc -I$(BUILD)/gen/small -I$(BUILD)/gen -MMD -MP $(WARN) $(WERROR)
# Names stay until the test cases of the ops are out, which lie in a segment of their own.
WASM_LINK    := --no-entry --export-dynamic --gc-sections --stack-first -z stack-size=1048576 \
                --import-memory --initial-memory=16777216 --strip-debug
WASM_SRC     := $(filter-out src/base/os/os_posix% src/base/os/os_wasm_thread.c src/base/os/os_wasm_single.c \
                  src/simd/pack.c src/training/data/stories_data.c src/engine/cache_pages.c src/load/file_maps.c src/load/pack_cache.c \
                  src/inspect/tune.c src/convert/convert%.c src/io/output.c src/dtype/quantize.c src/io/hf/hf_methods.c \
                  src/api/native_files.c src/api/tuning.c src/training/data/chats.c src/training/data/masked.c src/training/preferences.c src/backend/webgpu/single/single.c \
                  $(WASM_LACKS),$(ALL_SRC))
# In this order, since gzip looks back 32 KB, and kernels resemble each other.
WASM_OBJ     := $(filter-out src/ops/%,$(WASM_SRC:%.c=%.o)) $(filter src/ops/%,$(WASM_SRC:%.c=%.o)) \
                  $(patsubst %.h,%.o,$(filter-out $(WASM_LACKS),$(SIMD))) src/ops/kernel_table.o
# The lists without what a module lacks, before the whole ones in the path of headers.
WASM_LISTS   := $(addprefix $(BUILD)/gen/web/,ir/ops.def model/families.def dtype/types.def simd_ops.h)
$(BUILD)/gen/web/%.def: src/%.def Makefile
	@mkdir -p $(@D)
	@sed -E '/^TG_[A-Z]+\(($(subst $(blank),|,$(WASM_LACKS_OPS) $(WASM_LACKS_FAMILIES)))\)$$/d;/^TG_GRID\(/d' $< > $@
$(BUILD)/gen/web/simd_ops.h: $(BUILD)/gen/simd_ops.h Makefile
	@mkdir -p $(@D)
	@sed -E '/^TG_[A-Z_]+\(($(subst $(blank),|,$(WASM_LACKS_OPS)))\)$$/d' $< > $@

# The loops that matter are unrolled by hand, so all is built for size: -O2 makes kernels larger, and
# no faster. LSR would split the address of a load from its constant distance, which instructions
# have room for. Constants of 64 bits take so much more room that those modules are built smaller.
WASM_COLD          := -Oz
WASM_HOT_scalar    := -Oz -mllvm -disable-lsr
WASM_HOT_simd      := -Os -mllvm -disable-lsr
WASM_HOT_relaxed   := $(WASM_HOT_simd)
WASM_HOT_64        := $(WASM_HOT_scalar)

# Of the ISAs, the name of the row in isa.def and the instructions.
WASM_ISA_scalar    := scalar
WASM_ISA_simd      := simd128
WASM_ISA_relaxed   := relaxed
WASM_FLAGS_scalar  := -I$(BUILD)/gen/none
WASM_FLAGS_simd    := -msimd128
WASM_FLAGS_relaxed := -msimd128 -mrelaxed-simd
WASM_FLAGS_mt      := -matomics
# Relocated numbers as short as they can be: a hundredth of a module. (With shared memory, lld-19 crashes.)
WASM_LINK_alone    := --compress-relocations
WASM_LINK_mt       := --shared-memory
wasm_words          = $(subst -, ,$(1))
wasm_isa            = $(WASM_ISA_$(firstword $(wasm_words)))
wasm_bits           = $(if $(filter 64,$(wasm_words)),64,32)
wasm_flags          = --target=wasm$(wasm_bits) $(foreach w,$(wasm_words),$(WASM_FLAGS_$(w)))
wasm_link           = -m wasm$(wasm_bits) $(foreach w,$(wasm_words) $(if $(filter mt,$(wasm_words)),,alone),$(WASM_LINK_$(w))) \
                      $(if $(filter mt,$(wasm_words)),--max-memory=$(if $(filter 64,$(wasm_words)),17179869184,4294967296))
wasm_simd           = $(WASM_HOT_$(or $(filter 64,$(wasm_words)),$(firstword $(wasm_words)))) -std=gnu11 -Wno-pedantic -DTG_ISA=$(wasm_isa) -DTG_ISA_$(call upper,$(wasm_isa))
wasm_threads        = src/base/os/os_wasm_$(if $(filter mt,$(wasm_words)),thread,single).o
wasm_gpu            = $(patsubst %,src/backend/webgpu/device/%.o,$(if $(filter scalar,$(wasm_words)),gpu_none,gpu_js) self_test/gpu_untested)
# What knows of no thread and of no ISA is the same in all builds that differ in these alone: it is
# compiled once. (One with atomics that is missing in the first list, lld refuses.)
WASM_OWN_mt        := $(addprefix src/,base/thread.o base/os/os_wasm_thread.o simd/cpu.o load/packing.o \
                        backend/cpu/cpu.o backend/webgpu/webgpu.o)
WASM_OWN_relaxed   := %.simd.o $(patsubst %.c,%.o,src/ops/kernel_table.c \
                        $(shell grep -l isa.def -r src --include=*.c))
wasm_any_isa        = $(if $(filter $(WASM_OWN_relaxed),$(2)),$(1),$(1:relaxed%=simd%))
wasm_home           = $(if $(filter $(WASM_OWN_mt),$(2)),$(wasm_any_isa),$(patsubst %-mt,%,$(wasm_any_isa)))
wasm_objects        = $(foreach o,$(WASM_OBJ) $(wasm_threads) $(wasm_gpu),$(WASM)/$(wasm_home_of_o)/$(o))
wasm_home_of_o      = $(call wasm_home,$(1),$(o))

# $(1) the build, $(2) the objects, $(3) flags of their own
define wasm_compile
$(WASM)/$(1)/$(2)
	@mkdir -p $$(@D)
	@echo "  $$@"
	$$(Q)$$(CACHED) $$(WASM_CC) $(wasm_flags) $$(WASM_BASE) $(3) -c $$< -o $$@
endef
define wasm_rules
$(call wasm_compile,$(1),src/base/libc_wasm.o: src/base/libc_wasm.c,$(C11) $(WASM_COLD) -fno-builtin)
$(call wasm_compile,$(1),%.simd.o: %.simd.h,$(wasm_simd) -x c)
$(call wasm_compile,$(1),src/ops/kernel_table.o: src/ops/kernel_table.c $(BUILD)/gen/simd_ops.h,$(wasm_simd))
$(call wasm_compile,$(1),%.o: %.c,$(C11) $(WASM_COLD))
$(WASM)/tinygpt-$(1).wasm: $(call wasm_objects,$(1)) tools/wasm_cases.mjs | $(WASM_OPT)
	$$(Q)$$(WASM_LD) $$(WASM_LINK) $(wasm_link) -o $$@.linked $$(filter %.o,$$^)
	$$(Q)$$(NODE) tools/wasm_cases.mjs $$@.linked $$(@:.wasm=.cases)
	$$(Q)$$(NODE) $$(WASM_OPT) $$(WASM_PASSES) -o $$@ $$@.linked
	$$(Q)rm $$@.linked
endef
$(sort $(foreach b,$(WASM_BUILDS),$(call wasm_objects,$(b)))): | $(WGSL_SMALL) $(WGSL_NONE) $(WASM_LISTS)
$(foreach b,$(WASM_BUILDS),$(eval $(call wasm_rules,$(b))))

$(WASM_OPT):
	@echo "$@ is missing: tools/setup.sh gets it" >&2; false

WASM_MODULES := $(WASM_BUILDS:%=$(WASM)/tinygpt-%.wasm)
wasm: $(WASM_MODULES) $(WASM)/stories.txt

# No module carries it: whoever loads one fetches it, if stories are wanted.
$(WASM)/stories.txt: data/stories.txt
	@mkdir -p $(@D)
	@cp $< $@

$(BUILD)/test/wasm_native: test/wasm/native.c $(LIB)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) $(BASE) $< -o $@ $(LIB) $(LDLIBS)

test-wasm: wasm $(BUILD)/test/wasm_native
	$(NODE) test/wasm/train.mjs $(BUILD)
	$(NODE) test/wasm/chat.mjs $(BUILD)

# ------------------------------------------------------------------------------------------- web
# npm's own record of what it installed is the mark: packages come anew when the lock file changes.
WEB_INSTALLED := web/node_modules/.package-lock.json

$(WEB_INSTALLED): web/package-lock.json
	@echo "  npm ci"
	$(Q)cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

web/lib/index.js: $(wildcard web/src/lib/*.ts web/src/lib/*/*.ts web/tsconfig*.json) $(WEB_INSTALLED)
	@echo "  web/lib"
	@rm -rf web/lib
	$(Q)cd web && npm run --silent build:lib
	@touch $@

web-lib: wasm web/lib/index.js
	@mkdir -p web/wasm
	@cp -p $(WASM_MODULES) $(WASM_MODULES:.wasm=.cases) $(WASM)/stories.txt web/wasm/
	@cp -p LICENSE web/

test-web: web-lib $(BUILD)/test/wasm_native $(PROGRAM)
	cd web && TG_BUILD=$(abspath $(BUILD)) $(NODE) node_modules/.bin/vitest run

web: wasm $(WEB_INSTALLED)
	$(Q)cd web && node_modules/.bin/tsc -p tsconfig.json && \
	  TG_WASM_DIR=$(abspath $(WASM)) node_modules/.bin/vite build --logLevel warn
	$(Q)node tools/budget.mjs web/dist

gallery: $(PROGRAM)
	TG_PROGRAM=$(PROGRAM) NODE=$(NODE) python3 tools/gallery.py

test-e2e: web web-lib $(PROGRAM)
	$(Q)cd web && node_modules/.bin/tsc -p e2e/tsconfig.json && \
	  TG_PROGRAM=$(abspath $(PROGRAM)) TG_SCREENS=$(abspath $(BUILD))/screens \
	  $(NODE) node_modules/.bin/vitest run --config e2e/vitest.config.ts $(E2E)

# --------------------------------------------------------------------------------------- testing
# Compiled and linked in two steps, so that ccache has a part in it. More than a hundred programs hold the
# library, so they are linked by lld, or without what a debugger reads (TEST_LINK= keeps that): in a third of the time.
TEST_LINK := $(if $(findstring clang,$(CC)),-fuse-ld=lld,-Wl,-S)
test_cflags = $(C11) -D_GNU_SOURCE $(BASE) -Iapp -Itest/unit -Wno-missing-prototypes \
              -DSTORIES='"$(STORIES)"'
$(STORIES): $(PROGRAM)
	@mkdir -p $(@D)
	@[ -e $@ ] || { rm -f $@.new; $(PROGRAM) corpus stories --bytes 1115394 --seed 42 --out $@.new >/dev/null && mv $@.new $@; }

$(BUILD)/test/op_test.o $(BUILD)/test/simd_test.o: $(BUILD)/test/%.o: test/%.c
	@mkdir -p $(@D)
	$(Q)$(CACHED) $(CC) $(test_cflags) -c $< -o $@

$(GPU_TESTS:%=%.o): $(BUILD)/test/%.o: test/gpu/%.c
	@mkdir -p $(@D)
	$(Q)$(CACHED) $(CC) $(test_cflags) -c $< -o $@

$(foreach c,$(UNIT_SRC),$(eval $(BUILD)/test/$(notdir $(c:.c=.o)): $(c)))
$(UNIT:%=%.o):
	@mkdir -p $(@D)
	$(Q)$(CACHED) $(CC) $(test_cflags) -c $(filter test/%.c,$^) -o $@

# In front of Dawn, for levers_test.
$(BUILD)/test/libshared.so: test/gpu/shared.c $(DAWN)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(CC) $(C11) -Wall -Wextra -shared -fPIC -isystem .cache/webgpu $< -o $@ -Wl,--no-as-needed $(abspath $(DAWN))

# Every ISA's simd/vec.h and vmath.h, wrapped into functions (test/simd_probe.simd.h).
$(BUILD)/test/simd_probe.simd.%.o: BASE += -Itest
$(BUILD)/test/simd_test: $(foreach i,$(ISAS),$(BUILD)/test/simd_probe.simd.$(i).o)

$(BUILD)/test/op_test $(BUILD)/test/simd_test $(GPU_TESTS) $(UNIT): $(BUILD)/test/%: $(BUILD)/test/%.o $(LIB)
	@echo "  $@"
	$(Q)$(CC) $(EXTRA) $(TEST_LINK) $(filter %.o,$^) -o $@ $(LIB) $(if $(filter op_test simd_test,$*),,-lcmocka) -lm $(LDLIBS)

$(filter $(BUILD)/test/test_app_%,$(UNIT)): $(filter-out $(BUILD)/app/main.o,$(APP_OBJ))

# Where the memory begins that stands for a module's.
$(BUILD)/test/test_os_wasm: LDLIBS += -no-pie -Wl,--defsym=__heap_base=0x20000028

# The program with a fault in its training.
$(BUILD)/test/tinygpt_nan: test/cli/nan_program.c test/unit/nan.h $(APP_OBJ) $(LIB)
	@echo "  $@"
	$(Q)$(CC) $(test_cflags) $(TEST_LINK) $< -o $@ $(APP_OBJ) $(LIB) $(LDLIBS)

# What shows what happens when a device is lost or a shader is wrong, is compiled into tests alone.
HOOKED := $(if $(WEBGPU),$(patsubst %,$(BUILD)/test/hooked/%.o,gpu_native self_test/gpu_self_test))
$(HOOKED): $(BUILD)/test/hooked/%.o: src/backend/webgpu/device/%.c $(FLAGS) | $(WGSL)
	@mkdir -p $(@D)
	$(Q)$(CACHED) $(CC) $(C11) $(BASE) -DTG_TEST_HOOKS -isystem .cache/webgpu -c $< -o $@
$(GPU_TESTS): $(HOOKED)

setup:
	@tools/setup.sh

# ONLY=WORD runs the jobs whose names hold it (tools/test_jobs.py).
test-quick: $(PROGRAM) $(TESTS)
	@tools/run_tests.py quick $(BUILD) $(ONLY)

test test-long: setup
	@tools/run_tests.py $(if $(filter test,$@),full,long) $(BUILD) $(ONLY)

.PHONY: tests
tests: $(TESTS) $(SHARED)

# Lines are enough for a trace, and a quarter faster to build than all that a debugger wants. It is
# clang's build, so that its warnings are errors somewhere; the main one has gcc's.
asan ubsan:
	@$(MAKE) --no-print-directory BUILD=build/asan CC=clang-19 WERROR=-Werror OPT=-O1 EXTRA="-g1 -fsanitize=address,undefined -fno-sanitize-recover=all -DTG_DEBUG" build tests

# Two short programs: what the compiler takes counts for more than how they run.
tsan:
	@$(MAKE) --no-print-directory BUILD=build/tsan CC=clang-19 OPT=-O0 EXTRA="-g1 -fsanitize=thread -DTG_DEBUG -DTG_FLOAT_REFS" $(or $(TSAN),$(TSAN_TESTS:%=build/tsan/test/%))

# Whatever has several threads.
TSAN_TESTS := test_base_thread test_threads

# Conversions that lose something, sums that wrap, shifts beyond the width: an error in the folders that read what others wrote, but
# in functions that are marked TG_WRAPS (base/libc.h).
INTSAN_TESTS = $(filter test_base_% test_io_% test_tok%,$(UNIT:$(BUILD)/test/%=%)) $(REPLAYS:$(BUILD)/test/%=%)
intsan:
	@$(MAKE) --no-print-directory BUILD=build/intsan CC=clang-19 OPT=-O1 EXTRA="-g1 -DTG_DEBUG" \
	  CHECKED="-fsanitize=integer,implicit-conversion -fno-sanitize-recover=all" $(INTSAN_TESTS:%=build/intsan/test/%)

# What the tests leave out: build/coverage/index.txt has it line by line.
COVERAGE_TESTS = $(INTSAN_TESTS) test_checkpoint test_lm_files test_lm_faults test_lm test_embed test_transformers test_api_args test_session test_resume test_train
COVERAGE_CLI   = $(patsubst %,test/cli/test_%.py,bad_models faults files model_ends model_keys outputs safetensors texts verify_models)
coverage:
	@$(MAKE) --no-print-directory BUILD=build/coverage OPT=-O1 EXTRA="-g0" CHECKED="-O0 -g0 --coverage" \
	  build/coverage/tinygpt build/coverage/test/stories.txt $(COVERAGE_TESTS:%=build/coverage/test/%)
	@python3 tools/oracle/fixtures.py build/fixtures >/dev/null
	@python3 tools/coverage.py build/coverage $(COVERAGE_TESTS) $(COVERAGE_CLI)

# Each test/fuzz/fuzz_<name>.c is a target of libFuzzer and, with a main of its own, a unit test that replays its corpus
# (test/fuzz/fuzz.h). What a run finds worth keeping stays in build/fuzz/corpus/<name>, from where the next one goes on; a finding is
# left in build/fuzz as <name>-crash-*.
FUZZ         := $(patsubst test/fuzz/fuzz_%.c,%,$(sort $(wildcard test/fuzz/fuzz_*.c)))
FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang-19
FUZZ_SAN     ?= address,undefined
FUZZ_ONLY    ?= $(FUZZ)
REPLAYS      := $(FUZZ:%=$(BUILD)/test/test_fuzz_%)
# The command line's target takes the calls of the parser.
$(BUILD)/test/test_fuzz_app_args $(BUILD)/fuzz_app_args: LDLIBS += -Wl,--wrap=tg_args_parse

$(REPLAYS:%=%.o): $(BUILD)/test/test_fuzz_%.o: test/fuzz/fuzz_%.c
	@mkdir -p $(@D)
	$(Q)$(CACHED) $(CC) $(test_cflags) -DTG_REPLAY='"$*"' -c $< -o $@

$(FUZZ:%=$(BUILD)/fuzz_%.o): $(BUILD)/fuzz_%.o: test/fuzz/fuzz_%.c
	@mkdir -p $(@D)
	$(Q)$(CACHED) $(CC) $(test_cflags) -c $< -o $@

$(filter $(BUILD)/test/test_fuzz_app_%,$(REPLAYS)): $(filter-out $(BUILD)/app/main.o,$(APP_OBJ))
$(REPLAYS): %: %.o $(LIB)
	@echo "  $@"
	$(Q)$(CC) $(EXTRA) $(TEST_LINK) $(filter %.o,$^) -o $@ $(LIB) $(LDLIBS)

$(FUZZ:%=$(BUILD)/fuzz_%): $(BUILD)/fuzz_%: $(BUILD)/fuzz_%.o $(LIB) $(filter-out $(BUILD)/app/main.o,$(APP_OBJ))
	@echo "  $@"
	$(Q)$(CC) -fsanitize=fuzzer $(EXTRA) $(TEST_LINK) $< $(if $(filter app_%,$*),$(filter $(BUILD)/app/%,$^)) -o $@ $(LIB) $(LDLIBS)

# In a build of its own, so that everything that a target reaches counts and is checked, but for vector kernels: targets run
# the scalar ones.
fuzz-targets:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=$(FUZZ_CC) VECTOR=-fno-sanitize=all OPT=-O1 EXTRA="-g1 -DTG_DEBUG -fno-sanitize-recover=all \
	  -fsanitize=fuzzer-no-link$(FUZZ_SAN:%=,%)" $(FUZZ_ONLY:%=$(BUILD)/fuzz/fuzz_%)

fuzz: fuzz-targets
	@for t in $(FUZZ_ONLY); do mkdir -p $(BUILD)/fuzz/corpus/$$t; echo "fuzz $$t, $(FUZZ_SECONDS) s"; \
	  $(BUILD)/fuzz/fuzz_$$t -timeout=10 -rss_limit_mb=1024 -close_fd_mask=3 -print_final_stats=1 \
	    -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$(BUILD)/fuzz/$$t- \
	    $$(ls test/fuzz/dict/$$t.dict 2>/dev/null | sed 's/^/-dict=/') \
	    $(BUILD)/fuzz/corpus/$$t test/fuzz/corpus/$$t >$(BUILD)/fuzz/$$t.log 2>&1 || { tail -30 $(BUILD)/fuzz/$$t.log; exit 1; }; \
	  grep '^stat::number\|^stat::average' $(BUILD)/fuzz/$$t.log; done; echo "$(words $(FUZZ_ONLY)) passed, 0 failed"

# -------------------------------------------------------------------------------------- checking
check: build wasm web-lib web
	@tools/check.sh

gen: $(BUILD)/gen_docs
	@for page in ops levers samplers; do $< $$page > docs/$$page.md; done
	@$(MAKE) --no-print-directory -s families > web/src/ui/model/families.gen.ts
	@python3 tools/gen_abi.py web/src/lib/abi.gen.ts

families: $(BUILD)/gen_docs
	@$< families $(WASM_LACKS_FAMILIES)
$(BUILD)/gen_docs: tools/gen_docs.c $(LIB)
	$(Q)$(CC) $(C11) $(BASE) $< -o $@ $(LIB) $(LDLIBS)

bench: $(PROGRAM)
	@bench/peers/run.sh

# Manual pages and completions are printed by the program, from the tables that its options are
# parsed by.
MAN         := tinygpt.1 $(patsubst %,tinygpt-%.1,$(shell sed -n 's/^TG_COMMAND.\([a-z]*\),.*/\1/p' app/commands.def))
COMPLETIONS := $(BUILD)/completions/tinygpt $(BUILD)/completions/_tinygpt $(BUILD)/completions/tinygpt.fish

$(BUILD)/man/tinygpt.1: $(PROGRAM)
	@rm -rf $(@D) && mkdir -p $(@D)
	$(Q)$(PROGRAM) help --man | awk -v d=$(@D)/ '/^\.\\" file / { f = d $$3 } { print > f }'

$(BUILD)/completions/tinygpt: $(PROGRAM)
	@mkdir -p $(@D)
	$(Q)$(PROGRAM) completion bash > $@
$(BUILD)/completions/_tinygpt: $(PROGRAM)
	@mkdir -p $(@D)
	$(Q)$(PROGRAM) completion zsh > $@
$(BUILD)/completions/tinygpt.fish: $(PROGRAM)
	@mkdir -p $(@D)
	$(Q)$(PROGRAM) completion fish > $@

TO        := $(DESTDIR)$(PREFIX)
SO_LINKS  := libtinygpt.so.$(SOVERSION) libtinygpt.so
INSTALLED := bin/tinygpt include/tinygpt.h lib/libtinygpt.a lib/pkgconfig/tinygpt.pc \
             lib/$(notdir $(SHARED)) $(SO_LINKS:%=lib/%) $(MAN:%=share/man/man1/%) \
             share/bash-completion/completions/tinygpt share/zsh/site-functions/_tinygpt \
             share/fish/vendor_completions.d/tinygpt.fish

# install(1) strips programs only, by the native strip.
install: build $(BUILD)/man/tinygpt.1 $(COMPLETIONS)
	install -d $(sort $(dir $(INSTALLED:%=$(TO)/%)))
	install -m 755 $(PROGRAM) $(TO)/bin/tinygpt
	install -m 644 include/tinygpt.h $(TO)/include/
	install -m 644 $(LIB) $(TO)/lib/
	install -m 755 $(SHARED) $(TO)/lib/
	$(STRIP) $(TO)/bin/tinygpt
	$(STRIP) --strip-unneeded $(TO)/lib/$(notdir $(SHARED))
	$(STRIP) --strip-debug $(TO)/lib/$(notdir $(LIB))
	for link in $(SO_LINKS); do ln -sf $(notdir $(SHARED)) $(TO)/lib/$$link; done
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: tinygpt' 'Description: trains and runs small GPTs' \
	  'Version: $(VERSION)' 'Libs: -L$${prefix}/lib -ltinygpt' 'Libs.private: -pthread' \
	  'Cflags: -I$${prefix}/include' > $(TO)/lib/pkgconfig/tinygpt.pc
	install -m 644 $(MAN:%=$(BUILD)/man/%) $(TO)/share/man/man1/
	install -m 644 $(BUILD)/completions/tinygpt $(TO)/share/bash-completion/completions/
	install -m 644 $(BUILD)/completions/_tinygpt $(TO)/share/zsh/site-functions/
	install -m 644 $(BUILD)/completions/tinygpt.fish $(TO)/share/fish/vendor_completions.d/

# The files, and no folder: another package may have put something there, or will.
uninstall:
	rm -f $(INSTALLED:%=$(TO)/%)

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
