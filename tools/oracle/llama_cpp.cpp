// llama_cpp.cpp - what llama.cpp answers: the golden numbers of test/golden/llama_cpp (greedy), and the
// mean loss that it finds on a text, to compare with `tinygpt eval`; by its library.
//
//     llama_cpp greedy MODEL PROMPTS [LOGITS]   each line of PROMPTS ("\n" spelled out) is continued by
//                                               64 tokens, the likeliest each; LOGITS gets all logits
//     llama_cpp loss MODEL TEXT BYTES           mean loss of windows of 512 tokens, each read anew
//
// A window is 512 tokens that follow each other; where the vocabulary begins texts with a token, that
// one and 511. All tokens but a window's first are predicted. The last window may be shorter. (Ours
// share a token where none begins a text, so that each is predicted.)
// Keys and values are kept as floats, and attention is not llama.cpp's flash kernel, which adds up in
// 16 bits: what is left of its own rounding is that of the products.
#include "llama.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr int kTokens = 64, kWindow = 512;

struct Model {
    llama_model *model;
    const llama_vocab *vocab;
    int size;
};

[[noreturn]] void die(const char *what, const char *which) {
    std::fprintf(stderr, "llama_cpp: %s: %s\n", what, which);
    std::exit(1);
}

Model load(const char *path) {
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    if (!m) die("cannot load", path);
    const llama_vocab *v = llama_model_get_vocab(m);
    return {m, v, llama_vocab_n_tokens(v)};
}

llama_context *context(const Model &m, int n_ctx) {
    llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = n_ctx;
    p.n_threads = p.n_threads_batch = 1;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    p.type_k = p.type_v = GGML_TYPE_F32;
    llama_context *c = llama_init_from_model(m.model, p);
    if (!c) die("cannot make", "a context");
    return c;
}

std::vector<llama_token> tokens_of(const Model &m, const std::string &text, bool begin, bool special) {
    std::vector<llama_token> t(text.size() + 8);
    const int n = llama_tokenize(m.vocab, text.data(), (int)text.size(), t.data(), (int)t.size(), begin, special);
    if (n < 0) die("cannot tokenize", text.c_str());
    t.resize(n);
    return t;
}

void decode(llama_context *c, llama_token *t, int n) {
    if (llama_decode(c, llama_batch_get_one(t, n)) != 0) die("cannot decode", "tokens");
}

void greedy(const Model &m, const char *prompts, const char *logits) {
    std::ifstream in(prompts);
    std::FILE *all = logits ? std::fopen(logits, "wb") : nullptr;
    for (std::string line; std::getline(in, line);) {
        for (size_t at; (at = line.find("\\n")) != std::string::npos;) line.replace(at, 2, "\n");
        std::vector<llama_token> t = tokens_of(m, line, true, true);
        std::printf("%zu", t.size());
        for (llama_token id : t) std::printf(" %d", id);
        std::printf("\n");
        llama_context *c = context(m, 1024);
        decode(c, t.data(), (int)t.size());
        for (int i = 0; i < kTokens; i++) {
            const float *l = llama_get_logits_ith(c, -1);
            int best = 0, second = 1;
            for (int j = 1; j < m.size; j++)
                if (l[j] > l[best]) best = j;
            if (best == 1) second = 0;
            for (int j = 0; j < m.size; j++)
                if (j != best && l[j] > l[second]) second = j;
            std::printf("%d %.4f%c", best, l[best] - l[second], i + 1 < kTokens ? ' ' : '\n');
            if (all) std::fwrite(l, sizeof *l, m.size, all);
            llama_token next = best;
            if (i + 1 < kTokens) decode(c, &next, 1);
        }
        llama_free(c);
    }
    if (all) std::fclose(all);
}

void loss(const Model &m, const char *path, size_t bytes) {
    std::ifstream in(path, std::ios::binary);
    std::string text(bytes, 0);
    in.read(&text[0], (std::streamsize)bytes);
    text.resize((size_t)in.gcount());
    const std::vector<llama_token> t = tokens_of(m, text, false, false);
    const bool begins = llama_vocab_get_add_bos(m.vocab);
    const size_t step = begins ? kWindow - 1 : kWindow;
    double sum = 0;
    size_t n = 0;
    llama_context *c = context(m, kWindow);
    llama_batch b = llama_batch_init(kWindow, 0, 1);
    for (size_t first = 0; first < t.size(); first += step) {
        std::vector<llama_token> w;
        if (begins) w.push_back(llama_vocab_bos(m.vocab));
        for (size_t i = first; i < t.size() && i < first + step; i++) w.push_back(t[i]);
        b.n_tokens = (int)w.size();
        for (int i = 0; i < b.n_tokens; i++) {
            b.token[i] = w[i];
            b.pos[i] = i;
            b.n_seq_id[i] = 1;
            b.seq_id[i][0] = 0;
            b.logits[i] = 1;
        }
        llama_memory_clear(llama_get_memory(c), true);
        if (llama_decode(c, b) != 0) die("cannot decode", "a window");
        double here = 0;
        for (int i = 0; i + 1 < b.n_tokens; i++) {
            const float *l = llama_get_logits_ith(c, i);
            double most = l[0], of_all = 0;
            for (int j = 1; j < m.size; j++) most = std::fmax(most, l[j]);
            for (int j = 0; j < m.size; j++) of_all += std::exp(l[j] - most);
            here += most + std::log(of_all) - l[w[i + 1]];
        }
        sum += here;
        n += w.size() - 1;
        std::printf("%zu %.6f\n", w.size() - 1, here);
    }
    std::printf("%zu %.6f\n", n, sum);
    llama_batch_free(b);
    llama_free(c);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc >= 4 && std::strcmp(argv[1], "greedy") == 0) {
        greedy(load(argv[2]), argv[3], argc > 4 ? argv[4] : nullptr);
    } else if (argc == 5 && std::strcmp(argv[1], "loss") == 0) {
        loss(load(argv[2]), argv[3], std::strtoull(argv[4], nullptr, 10));
    } else {
        die("usage", "greedy MODEL PROMPTS [LOGITS] | loss MODEL TEXT BYTES");
    }
}
