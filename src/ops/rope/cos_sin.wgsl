// SPDX-License-Identifier: Apache-2.0
// cos_sin.wgsl - cosine and sine of an angle.
//
// The built-in cos and sin may err by 2^-11 and are defined near 0 alone. So the angle loses its
// quarters of a turn first, by pi/2 in four parts of which three have eight bits, so that
// their products are exact up to 2^16 quarters; and the two
// functions are the minimax polynomials of Cephes (Moshier, single precision) on [-pi/4, pi/4].
fn cos_sin(angle: f32) -> vec2<f32> {
    let quarters = floor(fma(angle, 0.636619772, 0.5));
    var r = fma(-quarters, 1.5703125, angle);
    r = fma(-quarters, 4.825592041015625e-4, r);
    r = fma(-quarters, 1.2665987014770508e-6, r);
    r = fma(-quarters, 9.920935796805404e-10, r);
    let z = r * r;
    let s = fma(fma(fma(-1.9515295891e-4, z, 8.3321608736e-3), z, -1.6666654611e-1), z * r, r);
    let c = fma(fma(fma(2.443315711809948e-5, z, -1.388731625493765e-3), z, 4.166664568298827e-2),
                z * z, fma(-0.5, z, 1.0));
    switch u32(i32(quarters)) & 3u {
        case 0u: { return vec2<f32>(c, s); }
        case 1u: { return vec2<f32>(-s, c); }
        case 2u: { return vec2<f32>(-c, -s); }
        default: { return vec2<f32>(s, -c); }
    }
}
