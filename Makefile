# posenc: builds three archives and the server, runs every test. `make help` lists the targets, V=1 shows commands.
#
# BUILD=build/clang CC=clang builds beside the default; SANITIZE=address,undefined adds sanitizers. The archives are
# linked in the order server, api, core, so a lower layer cannot call a higher one.

ifeq ($(origin CC),default)
CC := gcc
endif
BUILD    ?= build
SANITIZE ?=
WERROR   ?= -Werror
CFLAGS   ?= -g1
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
PYTHON   ?= /usr/bin/python3
HOST     ?= 127.0.0.1
PORT     ?= 8080
export PYTHON

# ---- Flags -----------------------------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wformat=2 $(WERROR)
BASE     := -std=gnu11 -I. $(WARNINGS) -pthread -MMD -MP
OPTIMISE := -O2
# Contraction would make values depend on the instruction set; the code does not check errno or floating-point traps.
CORE     := -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math
# Objects of core/ and api/ are compiled once for all libraries. Only functions that posenc.h marks PE_API are visible in the shared one.
LIBRARY  := -fPIC -fvisibility=hidden -fno-semantic-interposition
ifneq ($(SANITIZE),)
BASE     += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif

# Libraries as pkg-config reports them, otherwise under Debian's names.
pkg       = $(shell pkg-config $(1) $(2) 2>/dev/null || echo $(3))
BLAS_INC := $(patsubst -I%,-isystem %,$(call pkg,--cflags,openblas,))
LIB_BLAS := $(call pkg,--libs,openblas,-lopenblas) -lm
LIB_WIRE := $(call pkg,--libs,jansson yaml-0.1 libpng zlib,-ljansson -lyaml -lpng -lz)
LIB_HTTP := $(call pkg,--libs,libmicrohttpd libuv libcurl nettle gnutls,-lmicrohttpd -luv -lcurl-gnutls -lnettle -lgnutls)

MACHINE      := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))

# Hardening: makes a memory error of ours end the process instead of being exploitable (tests/http/transport/test_hardening.py checks it).
# Not used with sanitizers, which find the same errors earlier and conflict with FORTIFY. Flags that the compiler does not know are left out.
takes    = $(shell $(CC) -Werror $(1) -x c -c /dev/null -o /dev/null 2>/dev/null && echo $(1))
ifeq ($(SANITIZE),)
HARDEN    := -fPIE -fstack-protector-strong $(call takes,-fstack-clash-protection) \
             $(call takes,$(if $(filter aarch64,$(MACHINE)),-mbranch-protection=standard,-fcf-protection))
# FORTIFY needs optimisation, and warns without it.
HARDEN    += $(if $(filter -O0,$(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDEN_LD := -pie -Wl,-z,relro,-z,now,-z,noexecstack
endif

# Kernels are compiled once per instruction set; core/numeric/isa.c chooses among them at run time.
ISAS         := base
ifeq ($(MACHINE),x86_64)
ISAS         += avx2 avx512
endif
FLAGS_base   :=
FLAGS_avx2   := -march=x86-64-v3
FLAGS_avx512 := -march=x86-64-v4 -mprefer-vector-width=512

# ---- Files -----------------------------------------------------------------------------------------------------------

CORE_C    := $(filter-out core/kernels/%,$(wildcard core/*.c core/*/*.c core/*/*/*.c))
KERNEL_C  := $(wildcard core/kernels/*.c)
API_C     := $(wildcard api/*.c api/*/*.c api/endpoints/*/*.c api/inputs/*/*.c) $(foreach isa,$(filter-out base,$(ISAS)),$(wildcard api/numbers/kernels/*_$(isa).c))
COMMAND_C := server/posenc.c $(wildcard server/command/*.c)
SERVER_C  := $(filter-out server/main.c $(COMMAND_C),$(wildcard server/*.c server/*/*.c server/*/*/*.c))
SUPPORT_C := $(filter-out tests/support/replay.c,$(wildcard tests/support/*.c))
FORMATTED := $(wildcard core/*.[ch] core/*/*.[ch] core/*/*/*.[ch] api/*.[ch] api/*/*.[ch] api/*/*/*.[ch] server/*.[ch] server/*/*.[ch] server/*/*/*.[ch] tests/*/*.[ch] tests/*/*/*.[ch] tests/*/*/*/*.[ch])

objects    = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
KERNEL_O  := $(foreach isa,$(ISAS),$(patsubst %.c,$(BUILD)/obj/%.$(isa).o,$(KERNEL_C)))
LIB_CORE  := $(BUILD)/libposenc.a
# The number in the soname: a release that breaks programs raises it. `make abi` compares the library with the list of its names.
ABI       := 0
VERSION   := $(shell sed -n 's/^\#define PE_VERSION "\(.*\)"/\1/p' core/posenc.h)
SHARED    := $(BUILD)/libposenc.so.$(VERSION)
STATIC    := $(BUILD)/gen/libposenc.a
LIB_API   := $(BUILD)/libposenc-api.a
LIB_SERVER:= $(BUILD)/libposenc-server.a
SUPPORT   := $(call objects,$(SUPPORT_C))

programs   = $(patsubst %.c,$(BUILD)/%,$(wildcard $(1)))
TESTS_CORE   := $(call programs,tests/core/test_*.c tests/core/*/test_*.c tests/core/*/*/test_*.c)
TESTS_API    := $(call programs,tests/api/test_*.c tests/api/*/test_*.c tests/api/*/*/test_*.c)
TESTS_SERVER := $(call programs,tests/server/test_*.c tests/server/*/test_*.c)
TESTS        := $(TESTS_CORE) $(TESTS_API) $(TESTS_SERVER)
FUZZERS      := $(call programs,tests/fuzz/fuzz_*.c)
REPLAYS      := $(patsubst %,%.replay,$(FUZZERS))
CORPORA      := $(patsubst %.tar.gz,$(BUILD)/%,$(wildcard tests/fuzz/corpus/*.tar.gz))
SLOW         := $(call programs,tests/slow/*.c)
BENCHES      := $(call programs,tests/bench/*.c)
TOOLS        := $(call programs,tests/tools/*.c)
# Makes system calls of a running server fail: a library to preload or, under sanitizers, which cannot be combined with
# preloading, a server whose allocations are wrapped.
FAULTS       := $(if $(SANITIZE),$(if $(findstring fuzzer,$(SANITIZE)),,$(BUILD)/tests/faults/posencd),$(BUILD)/tests/faults/faults.so)

# ---- Building --------------------------------------------------------------------------------------------------------

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all libraries tests msan-tests programs run serve test test-one check arm64 c-tests replay http page asan tsan test-slow slow scale \
        bench bench-quick bench-against bench-readme bench-one soak fuzz lint abi format docs image install uninstall deb help clean FORCE

# A shared library would need the sanitizers' own.
all: $(BUILD)/posencd $(BUILD)/posenc $(LIB_CORE) $(if $(SANITIZE),,$(SHARED) $(STATIC)) ## the server build/posencd, the command build/posenc, the libraries build/libposenc.a and .so (the default)
tests: $(TESTS) $(REPLAYS) $(CORPORA) $(FAULTS)
# Without those that call jansson, libuv, libyaml or nettle themselves.
msan-tests: $(TESTS_CORE) $(filter-out $(patsubst %,$(BUILD)/tests/fuzz/fuzz_%.replay,config http mcp numbers pasted request tokens),$(REPLAYS)) $(CORPORA)
programs: $(SLOW) $(BENCHES) $(TOOLS)

# V=1 shows whole commands.
Q   := $(if $(V),,@)
say  = $(if $(V),,@echo "  $(1)    $(2)")

# Prints one sentence that names the missing packages; takes a few milliseconds if none is missing.
libraries:
	@deploy/packages.sh check

# A change of flags rebuilds all objects.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(BASE) $(HARDEN) $(CORE) $(LIBRARY)' | cmp -s - $@ || echo '$(BASE) $(HARDEN) $(CORE) $(LIBRARY)' >$@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | libraries
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(BASE) $(HARDEN) $(OPTIMISE) $(CFLAGS) -c $< -o $@

$(BUILD)/obj/core/%.o: OPTIMISE := $(CORE) $(LIBRARY)
$(BUILD)/obj/api/%.o: OPTIMISE += $(LIBRARY)
# A test of cmocka has a parameter that few use.
$(BUILD)/obj/tests/%.o: private BASE += -Wno-unused-parameter
# Coverage of comparisons costs up to two thirds of the executions. It pays off in readers of binary files; text formats are
# covered by dictionaries and branches. In kernels and their tables it finds nothing.
ifneq ($(findstring fuzzer,$(SANITIZE)),)
$(BUILD)/obj/tests/fuzz/%.o: CPPFLAGS += -DPOSENC_FUZZING
BLIND := inline-8bit-counters,pc-table,indirect-calls,trace-cmp,stack-depth
$(BUILD)/obj/core/%.o $(BUILD)/obj/server/%.o $(BUILD)/obj/tests/%.o: CFLAGS += -fno-sanitize-coverage=trace-cmp,stack-depth
$(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out api/inputs/%,$(API_C))): CFLAGS += -fno-sanitize-coverage=trace-cmp
$(KERNEL_O): CFLAGS += -fno-sanitize-coverage=$(BLIND)
endif
$(BUILD)/obj/core/numeric/gemm.o: CPPFLAGS += $(BLAS_INC)

define kernel_rule
$(BUILD)/obj/core/kernels/%.$(1).o: core/kernels/%.c $$(BUILD)/flags | libraries
	@mkdir -p $$(@D)
	$$(call say,CC,$$< $(1))
	$$(Q)$$(CC) $$(CPPFLAGS) $$(BASE) $$(HARDEN) $$(OPTIMISE) $$(CFLAGS) -DPE_ISA_SUFFIX=$(1) $$(FLAGS_$(1)) -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(eval $(call kernel_rule,$(isa))))

# A kernel in api/ has one instruction set, named at the end of its file's name; the plain C version is in api/ itself.
$(BUILD)/obj/api/numbers/kernels/%_avx2.o: CPPFLAGS += $(FLAGS_avx2)

# Only main.c contains the commit, and is rebuilt when the commit changes.
COMMIT ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
$(BUILD)/obj/server/main.o: $(BUILD)/commit
$(BUILD)/obj/server/main.o: CPPFLAGS += -DPOSENC_COMMIT='"$(COMMIT)"'

# Members are appended, not replaced: objects of two folders may have the same name.
%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) qcs $@ $(filter %.o,$^)

MODELS_O := $(foreach table,names presets types,$(BUILD)/obj/core/models/$(table)_rows.o)
$(LIB_CORE): $(call objects,$(CORE_C)) $(KERNEL_O) $(MODELS_O) $(BUILD)/obj/core/zh_rows.o
$(LIB_API): $(call objects,$(API_C)) $(BUILD)/obj/api/zh_rows.o $(BUILD)/obj/api/numbers/powers_rows.o
$(LIB_SERVER): $(call objects,$(SERVER_C)) $(BUILD)/obj/server/page.o $(BUILD)/obj/server/clients.o

# Models are blocks of text, which awk converts to the rows of a table in C; a wrong block stops the build at its line.
$(BUILD)/gen/core/models/%_rows.c: core/models/%.txt core/models/rows.awk core/models/hf/list.h
	@mkdir -p $(@D)
	$(call say,AWK,$@)
	$(Q)LC_ALL=C awk -f core/models/rows.awk -v table=$* -v list=core/models/hf/list.h $(filter %.txt,$^) >$@
$(BUILD)/gen/core/models/types_rows.c: core/models/classes.txt

# Texts in Chinese are catalogues in gettext's format, which awk converts to sorted tables in C.
$(BUILD)/gen/%/zh_rows.c: %/zh.po core/po.awk
	@mkdir -p $(@D)
	$(call say,AWK,$@)
	$(Q)LC_ALL=C awk -f core/po.awk -v table=$(if $(filter core,$*),pe,$*)_zh $< >$@

# Powers of ten in 128 bits, with which numbers are read and printed.
$(BUILD)/gen/api/numbers/powers_rows.c: api/numbers/powers.awk
	@mkdir -p $(@D)
	$(call say,AWK,$@)
	$(Q)LC_ALL=C awk -f $< >$@

TABLES_O := $(MODELS_O) $(BUILD)/obj/core/zh_rows.o $(BUILD)/obj/api/zh_rows.o $(BUILD)/obj/api/numbers/powers_rows.o
$(TABLES_O): $(BUILD)/obj/%_rows.o: $(BUILD)/gen/%_rows.c $(BUILD)/flags | libraries
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(BASE) $(HARDEN) $(OPTIMISE) $(CFLAGS) -c $< -o $@

# A script of sh, esbuild, gzip and od converts the web page to C; without assembler, it works with every compiler and
# machine.
PAGE_FILES := $(sort $(foreach ending,html css js json svg,$(wildcard server/page/*.$(ending) server/page/*/*.$(ending) \
                     server/page/*/*/*.$(ending))) \
                     $(wildcard server/page/stories/*.md))
PAGE_NAMES := $(PAGE_FILES:server/page/%=%)
# A removed file makes no other newer, but it changes the list.
$(BUILD)/gen/server/page.list: FORCE
	@mkdir -p $(@D)
	@echo '$(PAGE_NAMES)' | cmp -s - $@ || echo '$(PAGE_NAMES)' >$@
$(BUILD)/gen/server/page.c: server/page/embed.sh $(PAGE_FILES) $(BUILD)/gen/server/page.list
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)server/page/embed.sh page_built_in server/page $(PAGE_NAMES) >$@

# The client libraries, which contain a part of the page and the version.
CLIENT_SOURCES := $(wildcard server/clients/*) server/page/asking/answers.js server/page/asking/client.js
$(BUILD)/gen/server/clients.c: server/page/embed.sh $(CLIENT_SOURCES) core/posenc.h
	@mkdir -p $(@D)/clients
	$(call say,EMBED,$@)
	$(Q)server/clients/assemble.sh $(@D)/clients $(VERSION)
	$(Q)server/page/embed.sh clients_built_in $(@D)/clients posenc.js posenc.py >$@

EMBEDDED_O := $(BUILD)/obj/server/page.o $(BUILD)/obj/server/clients.o
$(EMBEDDED_O): $(BUILD)/obj/server/%.o: $(BUILD)/gen/server/%.c $(BUILD)/flags | libraries
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(BASE) $(HARDEN) $(OPTIMISE) $(CFLAGS) -c $< -o $@

# Removing a source file makes no object newer, but it changes the list of members.
MEMBERS := $(CORE_C) $(KERNEL_O) $(API_C) $(SERVER_C)
$(BUILD)/members: FORCE
	@mkdir -p $(@D)
	@echo '$(MEMBERS)' | cmp -s - $@ || echo '$(MEMBERS)' >$@
$(LIB_CORE) $(LIB_API) $(LIB_SERVER): $(BUILD)/members

link = $(Q)mkdir -p $(@D) && $(if $(V),,echo "  LD    $@" &&) $(CC) $(BASE) $(HARDEN_LD) $(CFLAGS) $(LDFLAGS)

$(BUILD)/posencd: $(BUILD)/obj/server/main.o $(LIB_SERVER) $(LIB_API) $(LIB_CORE)
	$(link) $^ $(LIB_HTTP) $(LIB_WIRE) $(LIB_BLAS) -o $@

# Asks api/ in process: no server, no socket.
$(BUILD)/posenc: $(call objects,$(COMMAND_C) server/process/process.c) $(LIB_API) $(LIB_CORE)
	$(link) $^ $(LIB_WIRE) $(LIB_BLAS) -o $@

# Names that posenc.h declares are exported, as POSENC_0; everything else is hidden.
$(BUILD)/gen/posenc.map: Makefile
	@mkdir -p $(@D)
	$(Q)echo 'POSENC_$(ABI) { global: pe_*; local: *; };' >$@

# Never unloaded: jansson keeps pointers to its functions.
$(SHARED): $(LIB_API) $(LIB_CORE) $(BUILD)/gen/posenc.map
	$(Q)$(if $(V),,echo "  LD    $@" &&) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libposenc.so.$(ABI) -Wl,--version-script=$(BUILD)/gen/posenc.map \
	    -Wl,-z,defs,-z,text,-z,relro,-z,now,-z,noexecstack,-z,nodelete -Wl,--whole-archive $(LIB_API) $(LIB_CORE) -Wl,--no-whole-archive \
	    $(LIB_WIRE) $(LIB_BLAS) -o $@

# What is installed as libposenc.a: core, and api/ as one member whose own names are hidden. A program that does not use
# pe_call links core alone, without jansson, libyaml, libpng and zlib.
$(STATIC): $(LIB_API) $(LIB_CORE)
	@mkdir -p $(@D)
	$(Q)$(CC) -r -nostdlib -Wl,--whole-archive $(LIB_API) -o $(@D)/posenc-api.o
	$(Q)objcopy --wildcard --keep-global-symbol='pe_*' $(@D)/posenc-api.o
	$(Q)cp $(LIB_CORE) $@.part && $(AR) qs $@.part $(@D)/posenc-api.o && mv $@.part $@

# ---- Tests: each sees its own layer and those below, nothing above. ----------------------------------------------------

# A linker that takes half the time, where there is one: there are 150 programs.
QUICK_LD := $(if $(SANITIZE),,$(if $(shell command -v ld.gold),-fuse-ld=gold))

# Allocations go through tests/support/alloc.c, which can make the n-th one fail.
WRAP := $(QUICK_LD) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
WRAP_ALL := $(WRAP),--wrap=aligned_alloc,--wrap=free # and which counts what is in use

$(TESTS_CORE): $(BUILD)/%: $(BUILD)/obj/%.o $(SUPPORT) $(LIB_CORE)
	$(link) $(WRAP_ALL) $^ -lcmocka $(LIB_BLAS) -o $@

$(TESTS_API): $(BUILD)/%: $(BUILD)/obj/%.o $(SUPPORT) $(LIB_API) $(LIB_CORE)
	$(link) $(WRAP_ALL) $^ -lcmocka $(LIB_WIRE) $(LIB_BLAS) -o $@

$(TESTS_SERVER): $(BUILD)/%: $(BUILD)/obj/%.o $(SUPPORT) $(LIB_SERVER) $(LIB_API) $(LIB_CORE)
	$(link) $(WRAP_ALL) $^ -lcmocka $(LIB_HTTP) $(LIB_WIRE) $(LIB_BLAS) -o $@

$(BUILD)/tests/faults/faults.so: $(wildcard tests/faults/*.[ch])
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(filter-out -MMD -MP,$(BASE)) -O2 -g -fPIC -shared $(filter %.c,$^) -ldl -o $@

$(BUILD)/obj/tests/faults/%.o: CPPFLAGS += -DFAULTS_WRAPPED
$(BUILD)/tests/faults/posencd: $(BUILD)/obj/server/main.o $(call objects,tests/faults/control.c tests/faults/memory.c) \
                               $(LIB_SERVER) $(LIB_API) $(LIB_CORE)
	$(link) $(WRAP),--wrap=aligned_alloc,--wrap=mmap $^ $(LIB_HTTP) $(LIB_WIRE) $(LIB_BLAS) -o $@

# What each column of a scheme's table should be, from the formulas of tests/truth.
$(BUILD)/gen/scheme_frequencies.h: tests/tools/scheme_frequencies.py $(wildcard tests/truth/*.py)
	@mkdir -p $(@D)
	$(call say,MPMATH,$@)
	$(Q)$(PYTHON) -B $< >$@
$(BUILD)/gen/wave_frequencies.h: tests/tools/wave_frequencies.py
	@mkdir -p $(@D)
	$(call say,MPMATH,$@)
	$(Q)$(PYTHON) -B $< >$@
OF_FREQUENCIES := $(patsubst %,$(BUILD)/obj/tests/%.o,slow/schemes_exact core/waves/test_waves core/waves/test_wave_list)
$(OF_FREQUENCIES): $(BUILD)/gen/wave_frequencies.h
$(BUILD)/obj/tests/slow/schemes_exact.o: $(BUILD)/gen/scheme_frequencies.h
$(OF_FREQUENCIES): CPPFLAGS += -I$(BUILD)/gen

$(SLOW) $(BENCHES) $(TOOLS): $(BUILD)/%: $(BUILD)/obj/%.o $(LIB_API) $(LIB_CORE)
	$(link) $(QUICK_LD) $^ $(LIB_WIRE) $(LIB_BLAS) -o $@

$(REPLAYS): $(BUILD)/%.replay: $(BUILD)/obj/%.o $(BUILD)/obj/tests/support/replay.o $(BUILD)/obj/tests/support/kernels.o $(LIB_SERVER) $(LIB_API) $(LIB_CORE)
	$(link) $(QUICK_LD) $^ $(LIB_HTTP) $(LIB_WIRE) $(LIB_BLAS) -o $@

# Each replay gets a folder of inputs. It is renamed last, so that a partly unpacked archive is never taken for the whole.
$(CORPORA): $(BUILD)/%: %.tar.gz
	@rm -rf $@ $@.part && mkdir -p $@.part
	$(call say,UNPACK,$@)
	$(Q)tar -xzmf $< -C $@.part && touch $@.part && mv $@.part $@

$(FUZZERS): $(BUILD)/%: $(BUILD)/obj/%.o $(LIB_SERVER) $(LIB_API) $(LIB_CORE)
	$(link) -fsanitize=fuzzer $^ $(LIB_HTTP) $(LIB_WIRE) $(LIB_BLAS) -o $@

# The kernels that all tests use, in C and in servers: base, avx2 or avx512; empty: the best of this machine.
KERNELS   ?=
RUN_TESTS := BUILD=$(BUILD) KERNELS=$(KERNELS) tests/support/run_tests.sh

c-tests: ## only the tests in C
	@$(MAKE) --no-print-directory -j$(JOBS) tests
	@$(RUN_TESTS) c replay

http: all $(FAULTS) ## only the tests over a socket (T=test_rotate.py for one file)
	@T='$(T)' $(RUN_TESTS) http

# $(T) in the name of a program
named = $(strip $(foreach test,$(TESTS_CORE) $(TESTS_API) $(TESTS_SERVER),$(if $(findstring $(T),$(notdir $(test))),$(test))))
test-one: all $(if $(T),$(named)) ## the tests in C, over a socket and of the page whose names have a word (T=alibi)
	@ONE='$(or $(T),$(error make test-one T=alibi: which tests?))' $(RUN_TESTS) c http page

page: all ## only the tests of the web page, in node and in chromium (T=test_heat.py or T=state for one file)
	@T='$(T)' $(RUN_TESTS) page

# What the tests need is installed while the server is built: on a fresh machine that saves a minute.
test: ## install what is missing, build, run every test, print totals (KERNELS=base, avx2 or avx512 with these kernels; ALSO=arm64)
	@deploy/packages.sh install build
	@mkdir -p $(BUILD); $(MAKE) --no-print-directory -j$(JOBS) all >$(BUILD)/all.log 2>&1 & built=$$!; \
	    deploy/packages.sh install test && $(ALSO:%=deploy/packages.sh install % &&) deploy/packages.sh unpack build/tools; failed=$$?; \
	    wait $$built || failed=1; cat $(BUILD)/all.log; exit $$failed
	@$(MAKE) --no-print-directory -j$(JOBS) all tests $(TOOLS)
	@$(RUN_TESTS) lint c replay http page $(ALSO)

check: ## what every commit passes, two minutes when little has changed: both compilers, lint, tests in C, the most telling over a socket
	@deploy/packages.sh install test
	@$(MAKE) --no-print-directory -j$(JOBS) all tests programs
	@$(MAKE) --no-print-directory -j$(JOBS) all tests programs BUILD=$(BUILD)/clang CC=clang
	@$(RUN_TESTS) lint c replay brief

# What computes is tested with both compilers, because each finds undefined behaviour that the other does not see.
COMPUTING := test_random test_laws test_rotate test_attention_random test_analyze_random test_diagnose test_cases

# MemorySanitizer needs everything compiled with it. What OpenBLAS and jansson read and write is told at their doors (core/outside.h);
# the kernels are base, because it does not know which lanes of a register an intrinsic selects.
asan: ## every test under AddressSanitizer and UndefinedBehaviorSanitizer of gcc, those of what computes under clang's too, core and the replays under MemorySanitizer
	@deploy/packages.sh install asan
	@$(MAKE) --no-print-directory -j$(JOBS) msan-tests BUILD=$(BUILD)/msan CC=clang SANITIZE=memory
	@BUILD=$(BUILD)/msan KERNELS=base POSENC_SANITIZED=1 tests/support/run_tests.sh c replay
	@$(MAKE) --no-print-directory -j$(JOBS) all tests BUILD=$(BUILD)/asan SANITIZE=address,undefined
	@BUILD=$(BUILD)/asan KERNELS=$(KERNELS) POSENC_SANITIZED=1 PLACES=1 tests/support/run_tests.sh c replay http
	@$(MAKE) --no-print-directory -j$(JOBS) all tests BUILD=$(BUILD)/clang-asan CC=clang SANITIZE=address,undefined
	@BUILD=$(BUILD)/clang-asan KERNELS=$(KERNELS) POSENC_SANITIZED=1 tests/support/run_tests.sh c replay
	@set -e; for t in $(COMPUTING); do T=$$t.py BUILD=$(BUILD)/clang-asan KERNELS=$(KERNELS) POSENC_SANITIZED=1 \
	    tests/support/run_tests.sh http; done

# ThreadSanitizer does not see how OpenBLAS hands work to its own threads; the server lets it use one only, so the tests do too.
tsan: ## every test under ThreadSanitizer
	@$(MAKE) --no-print-directory -j$(JOBS) all tests BUILD=$(BUILD)/tsan SANITIZE=thread
	@BUILD=$(BUILD)/tsan KERNELS=$(KERNELS) POSENC_SANITIZED=1 OPENBLAS_NUM_THREADS=1 tests/support/run_tests.sh c replay http

test-slow: all ## exhaustive checks that take minutes: tests/slow in full, laws and values at places on new examples (SEED=N again), what is left out of http
	@$(MAKE) --no-print-directory -j$(JOBS) $(SLOW) $(BUILD)/tests/api/test_places
	@SEED=$(SEED) $(RUN_TESTS) slow
slow: test-slow

scale: all ## several servers behind proxies, also for minutes: 16 GiB read by dask, all of test_proxies.py, and the container image
	@deploy/packages.sh install scale
	@deploy/packages.sh unpack build/tools
	@POSENCD=$(abspath $(BUILD)/posencd) $(PYTHON) -m pytest -q -p no:cacheprovider -rsP --durations=10 -m 'slow or not slow' \
	    tests/http/transport/test_proxies.py tests/http/guides/test_monitoring.py tests/http/formats/test_zarr.py tests/deploy

SOAK_MINUTES ?= 3
SOAK_BUILD   ?=
SOAK := $(PYTHON) tests/soak --seconds $$(awk 'BEGIN { print 60 * $(SOAK_MINUTES) }') --seed '$(SOAK_SEED)' --output $(BUILD)/soak.json
soak: ## SOAK_MINUTES (3) of mixed load on one server, judged by value; SOAK_BUILD=asan under sanitizers, SOAK_SEED=N again
ifeq ($(SOAK_BUILD),asan)
	@$(MAKE) --no-print-directory -j$(JOBS) all BUILD=$(BUILD)/asan SANITIZE=address,undefined
	@POSENC_SANITIZED=1 $(SOAK) --program $(BUILD)/asan/posencd
else
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(SOAK) --program $(BUILD)/posencd
endif

# The tool that prints the hashes, without BLAS: Debian has none for another machine, and what is hashed multiplies no matrices.
NO_BLAS := $(foreach call,cblas_sgemm cblas_dgemm openblas_set_num_threads,-Wl,--defsym=$(call)=abort)
$(BUILD)/hashes: $(BUILD)/obj/tests/tools/table_hashes.o $(LIB_CORE)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -static $(NO_BLAS) $^ -lm -pthread -o $@

arm64: ## the core on emulated arm64 gives this machine's bytes (installs a cross compiler and qemu)
	@deploy/packages.sh install arm64
	@$(RUN_TESTS) arm64

BENCH := PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/bench --build $(BUILD)
bench: ## every row of the table of speeds, up to 20 minutes, into build/bench.json (ROWS="table stream" for some)
	@$(MAKE) --no-print-directory -j$(JOBS) all $(BENCHES)
	@$(BENCH) $(ROWS)

bench-quick: ## a part of them in under two minutes
	@$(MAKE) --no-print-directory -j$(JOBS) all $(BENCHES)
	@$(BENCH) --quick $(ROWS)

bench-against: ## ours now and at an earlier commit, in pairs (REV=HEAD~10; ROWS as for bench)
	@[ -n "$(REV)" ] || { echo "bench-against: which commit? make bench-against REV=HEAD~10"; exit 2; }
	@$(MAKE) --no-print-directory -j$(JOBS) all $(BENCHES)
	+@$(BENCH) --against $(REV) $(ROWS)

bench-readme: ## put the table of build/bench.md into tests/bench/SPEEDS.md
	@$(PYTHON) tests/lint/splice.py write tests/bench/SPEEDS.md bench=$(BUILD)/bench.md

B ?= bench_kernels bench_numbers bench_answers
bench-one: ## the benches in C as they print (B=bench_kernels for one)
	@$(MAKE) --no-print-directory -j$(JOBS) $(BENCHES)
	@for b in $(B); do echo "== $$b"; $(BUILD)/tests/bench/$$b || exit 1; done

FUZZ_SECONDS ?= 30
FUZZ_RUNS    ?=
FUZZ         ?=
FUZZ_BUILD   := $(BUILD)/fuzz
fuzz-build:
	@$(MAKE) --no-print-directory -j$(JOBS) fuzz-programs BUILD=$(FUZZ_BUILD) CC=clang SANITIZE=fuzzer-no-link,address,undefined
fuzz-programs: $(FUZZERS)
fuzz: fuzz-build ## every reader of foreign bytes: FUZZ_SECONDS (30) or FUZZ_RUNS each, FUZZ="query http" for some
	@$(PYTHON) tests/fuzz/targets.py --build $(FUZZ_BUILD) --json $(BUILD)/fuzz.json --seconds $(FUZZ_SECONDS) \
	    $(if $(FUZZ_RUNS),--runs $(FUZZ_RUNS)) $(FUZZ)

fuzz-corpus: fuzz-build ## keep in tests/fuzz/corpus what long runs have found, at most 200 small inputs each
	@$(PYTHON) tests/fuzz/targets.py --build $(FUZZ_BUILD) --keep $(FUZZ)
.PHONY: fuzz-build fuzz-programs fuzz-corpus

# ---- Text, look, documents ---------------------------------------------------------------------------------------------

lint: all $(TOOLS) ## layers, calls, format, generated text, folder guides, shell scripts
	@BUILD=$(BUILD) CC="$(CC)" ABI=$(ABI) tests/lint/run.sh $(FORMATTED)

abi: all ## does the shared library keep what programs rely on?
	@$(PYTHON) tests/lint/abi.py --build $(BUILD) --cc "$(CC)" --abi $(ABI)

format: ## settle the look
	@clang-format -i $(FORMATTED)

docs: all $(TOOLS) ## renew the generated parts of SCHEMES.md, MODELS.md, USING.md and RUNNING.md
	@BUILD=$(BUILD) tests/lint/generated.sh write

# ---- Running -----------------------------------------------------------------------------------------------------------

run: ## install what is missing, build, serve on 127.0.0.1:8080 (HOST=, PORT= change that)
	@deploy/packages.sh install build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@exec $(BUILD)/posencd --host $(HOST) --port $(PORT)

image: ## the container image posenc (needs Docker)
	docker build --build-arg COMMIT=$(COMMIT) -t posenc .

# What names the places where it is installed, renewed when these change.
$(BUILD)/gen/posenc.pc $(BUILD)/gen/posenc.service: $(BUILD)/gen/%: deploy/% FORCE
	@mkdir -p $(@D)
	@sed -e 's|^prefix=.*|prefix=$(PREFIX)|; s|^libdir=.*|libdir=$(LIBDIR)|; s|@VERSION@|$(VERSION)|; s|@LIBRARIES@|$(LIB_WIRE) $(LIB_BLAS)|' \
	    -e 's|/usr/local/|$(PREFIX)/|' $< >$@.new && { cmp -s $@.new $@ || cp $@.new $@; } && rm $@.new

# The programs print their manual pages and completions from their rows.
$(BUILD)/gen/posencd.8: $(BUILD)/posencd
	$(Q)$< --print-man >$@
$(BUILD)/gen/posenc.1: $(BUILD)/posenc
	$(Q)$< --print-man >$@
$(BUILD)/gen/posenc.bash $(BUILD)/gen/posenc.zsh $(BUILD)/gen/posenc.fish: $(BUILD)/gen/posenc.%: $(BUILD)/posenc
	$(Q)$< completion $* >$@

# What is installed: mode, file, place in PREFIX or in LIBDIR. `make uninstall` removes the same.
EXAMPLES      := share/doc/libposenc-dev/examples
INSTALLED     := 755:$(BUILD)/posencd:bin/posencd 755:$(BUILD)/posenc:bin/posenc \
                 644:$(BUILD)/gen/posencd.8:share/man/man8/posencd.8 644:$(BUILD)/gen/posenc.1:share/man/man1/posenc.1 \
                 644:$(BUILD)/gen/posenc.bash:share/bash-completion/completions/posenc \
                 644:$(BUILD)/gen/posenc.zsh:share/zsh/site-functions/_posenc \
                 644:$(BUILD)/gen/posenc.fish:share/fish/vendor_completions.d/posenc.fish 644:core/posenc.h:include/posenc.h \
                 644:$(BUILD)/gen/posenc.service:lib/systemd/system/posenc.service \
                 644:deploy/debian/posenc.sysusers:lib/sysusers.d/posenc.conf \
                 $(foreach file,$(notdir $(wildcard deploy/examples/*)),644:deploy/examples/$(file):$(EXAMPLES)/$(file))
INSTALLED_LIB := 644:$(STATIC):libposenc.a 644:$(SHARED):$(notdir $(SHARED)) 644:$(BUILD)/gen/posenc.pc:pkgconfig/posenc.pc
# Debugging information names the source folder, and is not installed (STRIP=: keeps it).
STRIP         ?= strip -g
LINKS_LIB     := $(notdir $(SHARED)):libposenc.so.$(ABI) libposenc.so.$(ABI):libposenc.so

define newline


endef
part   = $(word $(1),$(subst :, ,$(2)))
put    = install -D -m $(call part,1,$(1)) $(call part,2,$(1)) '$(DESTDIR)$(2)/$(call part,3,$(1))'$(newline)
point  = ln -sf $(call part,1,$(1)) '$(DESTDIR)$(LIBDIR)/$(call part,2,$(1))'$(newline)
bare   = $(STRIP) '$(DESTDIR)$(1)'$(newline)
remove = rm -f '$(DESTDIR)$(2)/$(lastword $(subst :, ,$(1)))'$(newline)

install: all $(filter $(BUILD)/gen/%,$(subst :, ,$(INSTALLED) $(INSTALLED_LIB))) ## copy to DESTDIR/PREFIX (/usr/local), libraries to LIBDIR (PREFIX/lib)
	$(foreach row,$(INSTALLED),$(call put,$(row),$(PREFIX)))
	$(foreach row,$(INSTALLED_LIB),$(call put,$(row),$(LIBDIR)))
	$(foreach row,$(LINKS_LIB),$(call point,$(row)))
	$(call bare,$(PREFIX)/bin/posencd)$(call bare,$(PREFIX)/bin/posenc)$(call bare,$(LIBDIR)/libposenc.a)$(call bare,$(LIBDIR)/$(notdir $(SHARED)))

uninstall: ## remove what install has copied there
	$(foreach row,$(INSTALLED),$(call remove,$(row),$(PREFIX)))
	$(foreach row,$(INSTALLED_LIB) $(LINKS_LIB),$(call remove,$(row),$(LIBDIR)))

# The tracked files in a folder of their own, with the packaging where Debian's tools look for it.
DEB := build/deb/posenc-$(VERSION)
# A placeholder until the owner names an address: control and changelog have it from here.
MAINTAINER ?= posenc maintainers <maintainers@users.noreply.github.com>
deb: ## Debian packages in build/deb (packages.sh install deb: what it needs)
	@deploy/packages.sh check deb
	rm -rf build/deb && mkdir -p $(DEB)
	git ls-files -z | tar -c --null -T - | tar -x -C $(DEB)
	cp -R $(DEB)/deploy/debian $(DEB)/debian
	sed -i 's/@MAINTAINER@/$(MAINTAINER)/' $(DEB)/debian/control $(DEB)/debian/changelog
	cd $(DEB) && SOURCE_DATE_EPOCH=$$(dpkg-parsechangelog -S Timestamp) DEB_BUILD_OPTIONS="nocheck parallel=$(JOBS)" MAKEFLAGS= \
	    dpkg-buildpackage -us -uc -b
	if command -v lintian >/dev/null; then lintian --fail-on error,warning build/deb/*.changes; else echo "lintian is not here"; fi
	@ls build/deb/*.deb

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

clean: ## remove build/
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
