// SPDX-License-Identifier: Apache-2.0
// matmul_padded.wgsl - operands as halves in scratch, each with its sides up to a multiple: m and n
// of 128, k of 32, so that matmul_matrices.wgsl has no edges. The text before this one says by
// LEFT_BY_K and RIGHT_BY_K which way they lie:
//
//     left   [M][K], else [K][M]     then     right   [N][K], else [K][N]
//
// What is beyond the end of k is zeros. What is beyond that of m and n is anything: nobody keeps it.
struct Sizes { m: u32, n: u32, k: u32 }

fn sizes() -> Sizes {
    let cols = op.ins[0].cols;
    return Sizes(out_rows(0u), op.outs[0].cols,
                 select(select(cols / 2u, cols, op.i3 == 0), in_rows(0u), op.i0 == 1));
}
fn padded(s: Sizes) -> Sizes {
    return Sizes((s.m + 127u) / 128u * 128u, (s.n + 127u) / 128u * 128u, (s.k + 31u) / 32u * 32u);
}

// What a and b are multiplied by before they are rounded: powers of two. Of gradients it changes with
// the run, and scaling() is what loss_scale.c says, where there is one.
fn scale_of(f: f32) -> f32 { return select(f * scaling(), 1.0, f == 0.0); }
