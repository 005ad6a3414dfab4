// matmul_split.wgsl - into how many parts k is cut: see matmul_split.h.
fn tiles_of(s: Sizes) -> u32 { return ((s.m + 63u) / 64u) * ((s.n + 63u) / 64u); }
fn split_of(s: Sizes) -> u32 { return max(1u, min(256u / tiles_of(s), (s.k + 127u) / 128u)); }
// Parts are multiples of 16; the last may be shorter, or empty.
fn part_of(s: Sizes) -> u32 {
    let parts = split_of(s);
    return ((s.k + parts - 1u) / parts + 15u) / 16u * 16u;
}
