// flash.wgsl - tiles of attention: what forward, backward and cached attention share.
//
// A workgroup of 256 threads has 32 queries and goes through the keys 32 at a time, or the other
// way round. Products over the head size D are made in pieces of 32 columns, which both operands
// are loaded into:
//
//     left, right  [32 rows][8 fours of a piece], rows padded to 9       2 x 4608 bytes
//     square       [32][32] scores or what is made of them, padded to 33     4224 bytes
//
// together less than the 16 KiB that every adapter has. In a square, thread (tid / 16, tid % 16)
// has two rows and two columns; in a sum over the square's columns, thread (tid / 8, tid % 8) has a
// row and a four of each piece: PIECES fours of the row, D <= 32 PIECES.

var<workgroup> left: array<vec4<f32>, 288>;
var<workgroup> right: array<vec4<f32>, 288>;
var<workgroup> square: array<f32, 1056>;

const LOWEST = -0x1p127f;

struct Heads { n_q: u32, n_kv: u32, size: u32, group: u32, q_row: u32, row: u32 }

fn heads() -> Heads {
    let h = u32(op.i0);
    let k = u32(op.i1);
    let d = u32(op.i2);
    return Heads(h, k, d, h / k, h * d, (h + 2u * k) * d);
}

// This thread's share of the product of left and right, rows (y, y + 16) by rows (x, x + 16):
// (y,x) (y,x+16) (y+16,x) (y+16,x+16).
fn piece_product(y: u32, x: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var c = 0u; c < 8u; c++) {
        let l0 = left[y * 9u + c];
        let l1 = left[(y + 16u) * 9u + c];
        let r0 = right[x * 9u + c];
        let r1 = right[(x + 16u) * 9u + c];
        sum += vec4<f32>(dot(l0, r0), dot(l0, r1), dot(l1, r0), dot(l1, r1));
    }
    return sum;
}

fn store_square(y: u32, x: u32, v: vec4<f32>) {
    square[y * 33u + x] = v.x;
    square[y * 33u + x + 16u] = v.y;
    square[(y + 16u) * 33u + x] = v.z;
    square[(y + 16u) * 33u + x + 16u] = v.w;
}
