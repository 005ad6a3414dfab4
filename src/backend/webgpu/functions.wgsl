// SPDX-License-Identifier: Apache-2.0
// functions.wgsl - what WGSL lacks or leaves too loose, for all shaders.

fn clamp_id(id: i32, n: u32) -> u32 { return u32(clamp(id, 0, i32(n) - 1)); }

// By bits, since a compiler may take it that there are no NaNs.
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

// exp, log and the gelu family by the polynomials of simd/vmath.h. The built-in exp may err by
// 3 + 2 |x| ulp, and there is no erf. Results below the normal numbers are 0; a NaN stays one.
fn exp1(x: f32) -> f32 {
    let n = floor(fma(clamp(x, -87.3, 88.0), 0x1.715476p+0f, 0.5));
    var r = fma(-n, 0x1.62e4p-1f, x);
    r = fma(-n, 0x1.7f7d1cp-20f, r);
    var p = fma(0x1.6a234ep-10f, r, 0x1.123a6cp-7f);
    p = fma(p, r, 0x1.5558f4p-5f);
    p = fma(p, r, 0x1.555490p-3f);
    p = fma(p, r, 0x1.fffffcp-2f);
    p = fma(p, r, 1.0);
    p = fma(p, r, 1.0);
    // 2^n: 1.5 * 2^23 + 127 more than n, its lowest bits are the exponent.
    return select(p * bitcast<f32>(bitcast<u32>(n + 12583039.0) << 23u), 0.0, x < -87.3);
}

// Of normal numbers above 0; what is not finite stays.
fn log1(x: f32) -> f32 {
    let from_root = bitcast<i32>(x) - 0x3f3504f3;
    let e = from_root >> 23u;
    let f = bitcast<f32>(bitcast<i32>(x) - (e << 23u)) - 1.0;
    let n = f32(e);
    var p = fma(0x1.14573cp-4f, f, -0x1.de660ep-4f);
    p = fma(p, f, 0x1.e70714p-4f);
    p = fma(p, f, -0x1.fc1d46p-4f);
    p = fma(p, f, 0x1.2335b0p-3f);
    p = fma(p, f, -0x1.555c5cp-3f);
    p = fma(p, f, 0x1.99a4cap-3f);
    p = fma(p, f, -0x1.000006p-2f);
    p = fma(p, f, 0x1.555548p-2f);
    let f2 = f * f;
    var tail = f2 * f * p;
    tail = fma(n, 0x1.7f7d1cp-20f, tail);
    tail = fma(-f2, 0.5, tail);
    return select(x, fma(n, 0x1.62e4p-1f, f + tail), is_finite(x));
}

// The normal distribution: 1/2 and an odd function. Beyond its limit, |x| = 5.25, it is exactly 0
// and 1, whatever an implementation makes of the sum: x * phi(x) is to be 0 far out.
fn phi1(x: f32) -> f32 {
    let y = clamp(x, -0x1.503692p+2f, 0x1.503692p+2f);
    let v = fma(y * y, 0x1.293726p-4f, -1.0);
    var p = fma(0x1.f74a56p-13f, v, -0x1.5841a6p-11f);
    p = fma(p, v, 0x1.5c745ap-11f);
    p = fma(p, v, -0x1.107ba4p-10f);
    p = fma(p, v, 0x1.7b1f84p-9f);
    p = fma(p, v, -0x1.6514b6p-8f);
    p = fma(p, v, 0x1.13d5b4p-7f);
    p = fma(p, v, -0x1.a29e22p-7f);
    p = fma(p, v, 0x1.2fbccap-6f);
    p = fma(p, v, -0x1.9a4988p-6f);
    p = fma(p, v, 0x1.0666ccp-5f);
    p = fma(p, v, -0x1.45bdecp-5f);
    p = fma(p, v, 0x1.96b2c2p-5f);
    p = fma(p, v, -0x1.12f392p-4f);
    p = fma(p, v, 0x1.13c848p-3f);
    return select(0.5 + y * p, step(0.0, x), abs(x) > 0x1.503692p+2f);
}

fn gelu_erf(x: f32) -> f32 { return x * phi1(x); }

fn gelu_erf_d(x: f32) -> f32 {
    let y = clamp(x, -0x1.6d9adep+2f, 0x1.6d9adep+2f);
    let v = fma(y * y, 0x1.f8473ap-5f, -1.0);
    var p = fma(-0x1.0b22fap-9f, v, 0x1.58618ep-8f);
    p = fma(p, v, -0x1.5f962cp-9f);
    p = fma(p, v, 0x1.992698p-10f);
    p = fma(p, v, -0x1.e2465cp-7f);
    p = fma(p, v, 0x1.d6a0eap-6f);
    p = fma(p, v, -0x1.105ba8p-5f);
    p = fma(p, v, 0x1.5b02f8p-5f);
    p = fma(p, v, -0x1.dd933ep-5f);
    p = fma(p, v, 0x1.1a4aa4p-4f);
    p = fma(p, v, -0x1.244feap-4f);
    p = fma(p, v, 0x1.18056cp-4f);
    p = fma(p, v, -0x1.f6a09ap-5f);
    p = fma(p, v, 0x1.b4c1eap-5f);
    p = fma(p, v, -0x1.8cec5ap-5f);
    p = fma(p, v, 0x1.9aba72p-5f);
    p = fma(p, v, -0x1.01bea0p-4f);
    p = fma(p, v, 0x1.fc94c6p-4f);
    let slope = select(0.5 + y * p, step(0.0, x), abs(x) > 0x1.6d9adep+2f);
    return select(slope, x, is_nan(x));
}

// By exp, and near 0, where that would lose what is small, by the first terms.
fn tanh1(x: f32) -> f32 {
    let y = x * x;
    let near = x * fma(y, fma(y, fma(y, -0.0539682540, 0.133333333), -0.333333333), 1.0);
    let e = exp1(clamp(2.0 * x, -40.0, 40.0));
    return select(near, (e - 1.0) / (e + 1.0), y > 0.0625);
}
// c tanh(x / c): a soft cap.
fn soft_cap(x: f32, c: f32) -> f32 { return c * tanh1(x / c); }

// x (1 + tanh(u)) / 2 is x / (1 + exp(-2u)).
fn gelu_tanh_e(x: f32) -> f32 { return exp1(x * fma(x * x, -0.0713548163, -1.59576912)); }
fn gelu_tanh(x: f32) -> f32 { return x / (1.0 + gelu_tanh_e(clamp(x, -10.0, 10.0))); }
fn gelu_tanh_d(x: f32) -> f32 {
    let y = clamp(x, -8.0, 8.0);
    let e = gelu_tanh_e(y);
    let g = 1.0 / (1.0 + e);
    let slope = fma(y * y, 0.214064449, 1.59576912);
    return select(fma(e * g * g, y * slope, g), x, is_nan(x));
}

// x / (1 + exp(-x)); x is held where exp is finite, and beyond it nothing changes.
fn silu(x: f32) -> f32 { return x / (1.0 + exp1(-max(x, -80.0))); }
fn silu_d(x: f32) -> f32 {
    let y = clamp(x, -80.0, 80.0);
    let e = exp1(-y);
    let g = 1.0 / (1.0 + e);
    return select(fma(e * g * g, y, g), x, is_nan(x));
}

// TG_ACT_NONE, TG_ACT_GELU_ERF, TG_ACT_GELU_TANH, TG_ACT_RELU2
fn activated(x: f32, act: i32) -> f32 {
    if (act == 1) { return gelu_erf(x); }
    if (act == 2) { return gelu_tanh(x); }
    if (act == 3) { return max(x, 0.0) * max(x, 0.0); }
    return x;
}
