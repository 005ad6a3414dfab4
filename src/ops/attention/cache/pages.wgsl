// SPDX-License-Identifier: Apache-2.0
// pages.wgsl - where a cache has what a head keeps of a position: see pages.h. The text after this
// one binds pages [S,C].

struct Cache { n_pages: u32, heads: u32, rows: u32, n_cols: u32 } // P, 2K, R, C

fn cache_of(cache: Shape, table: Shape) -> Cache {
    return Cache(cache.dim0, cache.dim1, cache.rows / (cache.dim0 * cache.dim1), table.cols);
}

// The number, among all rows of the cache, of the one that has this head (below 2K) at a position:
// the next positions up to the next multiple of 64 lie behind it. table: where its sequence begins
// in pages.
fn cache_row(c: Cache, table: u32, head: u32, position: u32) -> u32 {
    let page = clamp_id(pages[table + position / c.rows % c.n_cols], c.n_pages);
    return (page * c.heads + head) * c.rows + position % c.rows;
}
