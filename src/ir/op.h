/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - what an op is: one descriptor per op, found by its id and by nothing else.
 *
 * An op brings everything that is known about it: its shape rule, a plain reference, its gradient
 * as graph nodes, the fusions it takes part in, its test cases, and (in <op>.simd.h) fast bodies.
 * Graph, planner and backends walk tables of these descriptors and name no op.
 *
 * Kernels are blind: they see pointers, shapes, attributes and run-time scalars; they do not
 * allocate, fail, lock or know of graphs. A kernel works in phases with a barrier between two; a
 * phase has a number of independent units, and any worker may be given any range of them:
 *
 *     phase 0   units 0 1 2 3 | 4 5 6 7      e.g. pack panels           (worker 0 | worker 1)
 *     ---------------- barrier ----------------
 *     phase 1   units 0 1 2 | 3 4 5          e.g. tiles of the product
 *
 * The result must not depend on how units are handed out. Where a sum crosses units, each unit
 * leaves a partial in scratch, and a later phase adds them in a fixed order.
 */
#ifndef TG_IR_OP_H
#define TG_IR_OP_H

#include "base/err.h"
#include "ir/tensor.h"

#define TG_MAX_IN     8
#define TG_MAX_OUT    4
#define TG_MAX_PHASES 4

typedef enum tg_op_id {
#define TG_OP(name) TG_OP_##name,
#include "ir/ops.def"
#undef TG_OP
    TG_OP_COUNT
} tg_op_id;

typedef enum tg_lever_id {
#define TG_LEVER(name, on, bits, where, doc, state) TG_LEVER_##name,
#include "ir/levers.def"
#undef TG_LEVER
    TG_LEVER_COUNT
} tg_lever_id;
#define TG_LEVER_BIT(name) (1u << TG_LEVER_##name)

/* Whose plans a lever changes. */
enum { TG_LEVER_OF_BOTH, TG_LEVER_OF_CPU, TG_LEVER_OF_GPU };
typedef struct tg_lever_desc {
    const char *name, *doc, *state;
    bool default_on, keeps_bits, gpu_only, cpu_only;
} tg_lever_desc;
extern const tg_lever_desc tg_lever_table[TG_LEVER_COUNT]; /* defined in ops/ops.c */

/* Fixed when the graph is built. What i and f mean is said by each op. */
typedef struct tg_attr {
    int32_t i[6];
    float f[4];
} tg_attr;

/* What changes from call to call of a plan; on a GPU it is one small buffer written once a step. */
typedef struct tg_scalars {
    int32_t rows; /* rows of this call, for values of dynamic rows (tokens fed to a session) */
    int32_t accumulate; /* 0: the first micro-step of a step writes gradients, 1: later ones add */
    int32_t step;       /* optimizer step, from 1, for bias correction */
    float lr;
    /* sampling */
    float temperature, top_p, min_p, repeat_penalty;
    int32_t top_k, n_recent;
    uint32_t seed_lo, seed_hi, draw_lo, draw_hi;
} tg_scalars;

/* What a kernel gets. Pointers of absent inputs and outputs are NULL. For values of dynamic rows,
 * type.dim[0] is already the number of rows of this call. */
typedef struct tg_args {
    const void *in[TG_MAX_IN];
    void *out[TG_MAX_OUT];
    tg_type in_type[TG_MAX_IN];
    tg_type out_type[TG_MAX_OUT];
    tg_attr attr;
    const tg_scalars *rt;
    uint8_t acc;   /* bit k: out[k] += instead of = (already combined with rt->accumulate) */
    void *scratch; /* shared by the workers, kept between the phases of one step, 64-byte aligned */
    void *local;   /* of the calling worker alone, garbage at the start of every call */
    const void *copy; /* of in[1] as tg_variant.copy made it, or NULL: then in[1] is read itself */
    unsigned workers; /* workers of the pool: only for choosing a unit size, never for a result */
    bool rows_alone;  /* rows are to have the bits that each has in a call of its own. Kernels give
                         them always; a shader that does is the first that fits */
} tg_args;

/* Whole op, one call, in plain C on TG_REAL elements (float, or double in the second build of the
 * same file: dtype TG_F32 then means double). acc and rt hold as for kernels. scratch and local
 * are NULL: a reference that needs memory is written so that it needs none. */
typedef void (*tg_ref_fn)(const tg_args *a);

typedef struct tg_phase {
    size_t (*units)(const tg_args *a);
    void (*run)(const tg_args *a, size_t begin, size_t end);
} tg_phase;

/* One way to compute an op on one ISA. The first variant of the list whose needed levers are all on
 * and whose fits() (NULL: always) agrees is taken, when the plan is made. */
typedef struct tg_variant {
    const char *name; /* shown by dump and profile */
    uint32_t needs;   /* TG_LEVER_BITs that must be on */
    bool (*fits)(const tg_args *a);
    tg_phase phase[TG_MAX_PHASES]; /* ends with the first run == NULL */
    bool bf16_inputs; /* rounds its f32 inputs to bf16: tested on inputs that are rounded already */
    size_t (*scratch_bytes)(const tg_args *a); /* NULL: none; for the maximum shapes */
    size_t (*local_bytes)(const tg_args *a);   /* NULL: none */
    /* Of in[1], in an order that is read faster, for whoever comes again with the same. Bytes of
     * it, 0: there is nothing to be won; NULL: never. The result has the same bits either way. */
    size_t (*copy_bytes)(const tg_args *a);
    void (*copy)(const tg_args *a, void *to);
} tg_variant;

/* also: further ones, compiled on their own, that come behind these; NULL: no more. */
typedef struct tg_kernel_set {
    const tg_variant *variant;
    size_t n_variants;
    const struct tg_kernel_set *also;
} tg_kernel_set;

/*
 * The same op as shaders: passes of workgroups, one dispatch each, a pass seeing what those before
 * it wrote. Where a sum crosses workgroups, partials go through scratch as in a kernel, in an order
 * that the shapes alone decide: there are no atomics.
 *
 *     bindings of a pass   0  the step's words: attributes, shapes, what accumulates
 *                          1  tg_scalars, as they are
 *                          2 ..  bind[0], bind[1] ..: whole values, each a storage buffer
 *
 * The text is the prelude of backend/webgpu, `constants`, then the pieces of wgsl. An absent input
 * or output is bound to a dummy and has 0 rows in the words. An output that is a new version of an
 * input (state_in) is bound once, as the output.
 */
#define TG_MAX_PASSES  4
#define TG_MAX_BIND    8
#define TG_BIND_IN(k)  (uint8_t)(1 + (k))
#define TG_BIND_OUT(k) (uint8_t)(1 + TG_MAX_IN + (k))
enum {
    TG_BIND_SCRATCH = 1 + TG_MAX_IN + TG_MAX_OUT,
    TG_BIND_NONE /* a binding that the pass has for the sake of others of its text, and leaves */
};

typedef struct tg_shader_pass {
    const char *entry;          /* NULL: the passes end here */
    const char *const *wgsl[7]; /* pieces of text: lines, ended by NULL */
    const char *constants;      /* WGSL that comes before them, or NULL */
    bool reduces;               /* calls the functions of ops/reduce.wgsl, which come before that */
    bool fours;                 /* reads by Four and as_vec4, likewise: see vec4_loads */
    bool matrices;              /* multiplies by matrices of a subgroup: ops/matrices.wgsl */
    uint8_t bind[TG_MAX_BIND];  /* TG_BIND_..., ended by 0 where there are fewer */
    size_t (*groups)(const tg_args *a); /* workgroups; numbered by group_of() of the prelude */
} tg_shader_pass;

/* One way to compute an op on a GPU; the first that fits and is preferred (NULL: always) is taken.
 * fits says what a shader can do, prefers where it is faster than those behind it. Those that need
 * levers stand at the end of the list, and are asked first, before merges. */
typedef struct tg_shader {
    const char *name;
    uint32_t needs;  /* TG_LEVER_BITs that must be on */
    bool f16_inputs; /* rounds its f32 inputs to f16: tested on inputs that are rounded already */
    double tol;      /* of what else it rounds, in place of the case's; 0: nothing */
    bool (*fits)(const tg_args *a);
    bool (*prefers)(const tg_args *a);
    tg_shader_pass pass[TG_MAX_PASSES];
    size_t (*scratch_bytes)(const tg_args *a); /* NULL: none; for the maximum shapes */
    uint32_t (*word)(const tg_args *a);        /* op.word of the text, likewise; NULL: 0 */
    /* The first pass goes over the elements of input 0, and may be run on one piece of them after
     * another, with args of that piece: what has as many elements is cut likewise, attr.i[0], a
     * number of elements from the front, too, and scratch lies one piece behind the other. Later
     * passes bind none of that, and have op.groups, the workgroups of all pieces. */
    bool splits;
} tg_shader;

/*
 * The same op once more, on one row, as phases of a kernel that runs a whole plan in one dispatch:
 * backend/webgpu/single/single.h has the rules, and single.wgsl what a phase may call.
 *
 * A phase is a function of WGSL, fn PHASE_call(p: u32, group: u32, lane: u32), all three uniform
 * but for lane. All workgroups call it. Operand k of the text is bind[k]. A piece of text that says
 * PHASE_ is for one phase, and one that does not stands once, however many phases bring it.
 */
#define TG_MAX_GRID_PHASES 2
typedef struct tg_grid_phase {
    const char *call; /* NULL: the phases end here */
    const char *const *wgsl[5];
    uint8_t bind[TG_MAX_BIND]; /* as in tg_shader_pass */
    uint8_t states;            /* bit k: operand k is a state, where it is given; else it is none */
    uint8_t takes_row;         /* bit k: operand k may lie in the memory of each workgroup ... */
    bool gives_row;            /* ... and so may output 0, which each then computes for itself */
    uint8_t reads_old; /* bit k: of operand k, a state, what this dispatch writes is not read */
    size_t (*row_floats)(const tg_args *a); /* of that memory, which it needs anyway; NULL: none */
    bool (*rounds)(const tg_args *a); /* with lever int8_activations it needs a byte for each, apart
                                         from that memory; NULL: never */
} tg_grid_phase;

typedef struct tg_grid {
    bool (*fits)(const tg_args *a);     /* NULL: always */
    uint32_t (*word)(const tg_args *a); /* op.word; NULL: 0 */
    /* op.share, how so many workgroups of so many threads share the work; NULL: 0 */
    uint32_t (*share)(const tg_args *a, uint32_t groups, uint32_t threads);
    size_t (*scratch_bytes)(const tg_args *a); /* NULL: none */
    tg_grid_phase phase[TG_MAX_GRID_PHASES];
} tg_grid;

typedef struct tg_graph tg_graph;
typedef struct tg_node tg_node;
typedef struct tg_value tg_value;

/*
 * Steps near each other that one shader does at once: the three products of a linear layer's
 * backward pass, say, which read one gradient. An op lists those that its step may lead; the first
 * all of whose members are found is taken, and runs at the leader's place.
 *
 * joins says whether n is the member with this number, from 1 on. If a member reads what the leader
 * gives, the leader's output 0 is not written, so it must have no other reader. Functions of the
 * shader get the arguments of all members, an array; bindings are TG_BIND_OF(member, slot).
 */
#define TG_MAX_MEMBERS           4
#define TG_BIND_OF(member, slot) (uint8_t)(16 * (member) + (slot))
typedef struct tg_merge {
    uint8_t n_members; /* the leader included */
    tg_op_id ops[TG_MAX_MEMBERS];
    bool (*joins)(const tg_graph *g, const tg_node *leader, const tg_node *n, unsigned member);
    tg_shader shader;
} tg_merge;

/* Rows of a case that follow each other in a sequence. */
#define TG_CASE_SEQUENCES 4
typedef struct tg_case_rows {
    int32_t sequence, position, rows;
} tg_case_rows;

/* A test case: types of the inputs, attributes and run-time scalars; inputs are filled from the
 * case's number, f32 with normals (times scale, 0 = 1), i32 with values in [0, i32_below). */
typedef struct tg_case {
    tg_type in[TG_MAX_IN]; /* dtype TG_DTYPE_COUNT: the input is absent */
    tg_attr attr;
    tg_scalars rt;
    float scale;
    int32_t i32_below;
    uint8_t distinct; /* bit j: i32 in j gets a permutation of 0 .. its elements - 1 */
    uint8_t at_in; /* in at_in - 1, [T,2] i32, gets the rows of `at`: sequence, position; 0: none */
    tg_case_rows at[TG_CASE_SEQUENCES]; /* until one of 0 rows */
    /* Rewrites inputs that must fit each other (a saved log-sum-exp and what it was taken of),
     * after they were filled, on elements of TG_REAL like a reference; NULL: they are independent.
     */
    void (*prepare)(const tg_args *a);
    uint8_t positive; /* bit j: in j gets absolute values (variances, reciprocal deviations) */
    double tol;       /* |a-b| <= tol * (1 + |ref|) for kernels against the reference */
    uint8_t acc;      /* outputs that add */
    bool no_shader;   /* none is meant to fit: plans with such a step run on the CPU */
    bool rows_alone;  /* as tg_args */
    double grad_tol;  /* 0: 1e-6, the finite-difference bound in double */
} tg_case;

typedef struct tg_op_desc {
    const char *name, *doc;
    const char *in_names[TG_MAX_IN], *out_names[TG_MAX_OUT];
    uint8_t n_in, n_in_optional; /* inputs [n_in - n_in_optional, n_in) may be absent */
    uint8_t n_out;
    uint8_t reads_packed; /* bit j: in j may have blocks, or a layout of its own (ir/tensor.h) */
    uint8_t accumulates;  /* bit k: out k can be added into existing memory */
    int8_t
        state_in[TG_MAX_OUT]; /* out k is a new version of in (state_in[k] - 1); 0: a fresh value */
    int8_t in_place[TG_MAX_OUT]; /* out k may share memory with in (in_place[k] - 1) if nobody else
                                    reads that one later; 0: no */
    bool structural;             /* no kernel: input, state, view, constant ... */
    bool is_state;               /* structural: memory that outlives a run, bound by name */
    bool is_constant;            /* structural: a scalar, attr.f[0] */
    /* its reference is all it ever has: a few scalars, one row, or what only a GPU's plans fuse */
    bool scalar_only;
    bool ends_rows;   /* its outputs have no dynamic rows although its inputs do */
    uint8_t work_out; /* bit k: out k is work space, and what a run leaves in it means nothing */
    bool recompute;   /* cheap enough to be computed again in the backward pass rather than kept */

    /* Checks shapes and attributes of n, fills n->out[k].type; errors through tg_graph_fail. */
    void (*infer)(tg_graph *g, tg_node *n);
    tg_ref_fn ref, ref64;
    /* dy[k] is the gradient of out k, NULL where none flows; sets din[j] for inputs that have one.
     */
    void (*grad)(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din);
    /* Rewrites the graph around n, true if it changed something. Called when epilogue_fusion is on.
     */
    bool (*fuse)(tg_graph *g, tg_node *n);
    double (*flop)(const tg_args *a); /* NULL: not counted */
    const tg_shader *shaders;         /* NULL: none, and plans with this op run on the CPU */
    size_t n_shaders;
    const tg_merge *merges;
    size_t n_merges;
    const tg_grid *grid; /* NULL: plans with this op are never one dispatch */
    const tg_case *cases;
    size_t n_cases;
} tg_op_desc;

/* Descriptors by id; defined in ops/ops.c out of ops.def. */
extern const tg_op_desc *const tg_op_table[TG_OP_COUNT];

/*
 * An op's file ends with its descriptor:
 *     TG_OP_DESC(layer_norm) = { TG_DOC "...", TG_REFS(layer_norm, ref), ..., TG_CASES(cases) };
 * The file is compiled twice: as it is, and with TG_REAL=double and TG_REAL_IS_DOUBLE, which keeps
 * nothing but tg_ref64_<op>. So it has no other non-static function; builders are in ops/build.h.
 */
#ifndef TG_REAL
#define TG_REAL float
#endif
#ifdef TG_REAL_IS_DOUBLE
#define TG_OP_DESC(op)                                                                             \
    static const tg_op_desc desc_of_##op;                                                          \
    void tg_ref64_##op(const tg_args *a);                                                          \
    void tg_ref64_##op(const tg_args *a) { desc_of_##op.ref(a); }                                  \
    static const tg_op_desc desc_of_##op
#else
#define TG_OP_DESC(op)                                                                             \
    extern const tg_op_desc tg_op_##op;                                                            \
    void tg_ref64_##op(const tg_args *a);                                                          \
    const tg_op_desc tg_op_##op
#endif
/* A WebAssembly module has no references in double, no plans in one dispatch and no texts for
 * docs/ops.md, which would only take room: see TG_FLOAT_REFS in the Makefile. */
#ifdef TG_FLOAT_REFS
#define TG_REFS(op, fn) .ref = (fn)
#define TG_GRID(g)      .grid = 0 ? &(g) : NULL
#define TG_DOC          .doc = 1 ? NULL: /* and behind it, the text */
#else
#define TG_REFS(op, fn) .ref = (fn), .ref64 = tg_ref64_##op
#define TG_GRID(g)      .grid = &(g)
#define TG_DOC          .doc =
#endif
/* The cases of an op. Modules are downloaded without them, so there they lie apart from all other
 * constants (ops/cases_wasm.c). */
#ifdef __wasm__
#define TG_CASE_TABLE __attribute__((section("tg_cases"))) static const tg_case
#else
#define TG_CASE_TABLE static const tg_case
#endif
#define TG_CASES(list)   .cases = (list), .n_cases = sizeof(list) / sizeof(list)[0]
#define TG_MERGES(list)  .merges = (list), .n_merges = sizeof(list) / sizeof(list)[0]
#define TG_SHADERS(list) .shaders = (list), .n_shaders = sizeof(list) / sizeof(list)[0]

#endif
