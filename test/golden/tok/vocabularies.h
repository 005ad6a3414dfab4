/* SPDX-License-Identifier: Apache-2.0 */
/* Made by tools/oracle/vocabulary.py: what tokenizers learns from the text of test_learn.c. */
/* clang-format off */
static const char *const golden_bpe[] = {
    "ba", "re", "in", "th", "ou", "st", "sta", "nd", "\303\203\302\251", "er", "lo",
    "\302\270\305\203", "\303\244\302\270\305\203", "\304\240re", "\304\240ba",
    "\303\260\305\201", "\304\272\304\242", "\303\260\305\201\304\272\304\242", "07", "207",
    "\304\240207", "\304\240in", "'s", "\304\2401", "an", "\304\240th", "\304\240sta",
    "\304\240ou", "\304\240e", "\304\240nd", "ll", "\304\240\303\203\302\251", "\304\240er",
    "\304\240lo", "qu", "\304\240\303\244\302\270\305\203", "\304\240a",
    "\304\240\303\260\305\201\304\272\304\242", "ere", "\304\240an", "bare", "baba", "bath",
    "inin", "outh", "\304\240ll", "eba", "rein", "rere", "thba", "ouou", "eth", "reba", "stain",
    "thou", "erba", "\304\240ere", "ouba", "stath", "inre", "ein", "ndre", "inba", "thin",
    "thsta", "\304\240qu", "\304\240baba", "baou", "reer", "ousta", "ound", "ndin", "ndou",
    "\304\240basta", "elo", "ing", "th\303\244\302\270\305\203", "staba", "\304\240reou",
    "\304\240staba", "\304\240eba", "ath", "eou", "eer", "re\303\203\302\251", "innd", "ersta",
    "\304\240inre", "erth", "erou", "losta", "\304\240bare", "inou", "insta", "thre", "thth",
    "oure", "stalo", "ndba", "loin", "\303\244\302\270\305\203ba", "\303\244\302\270\305\203re",
    "ina", "ine", "\303\203\302\251in", "\303\203\302\251sta", "loth", "\304\240baou", "end",
    "ndsta", "erre", "\304\240reba", "\304\240bath", "\303\260\305\201\304\272\304\242!",
    "\304\240inin", "\304\240thba", "\304\240thth", "\304\240ther", "\304\240oure",
    "in\303\203\302\251", "nda", "er\303\203\302\251", "\304\240rea", "\304\240inth",
    "\304\240ousta", "esta", "resta", "oue", "ouin", "nd\303\203\302\251", "ndlo",
    "\303\203\302\251\303\244\302\270\305\203", "\304\240resta", "\304\240baer", "\304\240stare",
    "\304\240staou", "\304\240ouin", "aba", "bain", "basta", "ree", "ou\303\203\302\251", "ndth",
    "loe",
};
/* Those of several runs: their order is a hash table's. */
static const char *const golden_wordpiece[] = {
    "!", "##0", "##7", "##a", "##ae", "##an", "##ath", "##b", "##ba", "##d", "##e", "##eba",
    "##ein", "##elo", "##er", "##erba", "##ere", "##eth", "##g", "##h", "##i", "##in", "##inba",
    "##inin", "##l", "##ll", "##lo", "##n", "##nd", "##ndba", "##nde", "##o", "##ou", "##ouba",
    "##oue", "##ouou", "##q", "##qu", "##r", "##re", "##ree", "##s", "##sta", "##stae", "##stain",
    "##stath", "##t", "##ta", "##th", "##thba", "##the", "##thin", "##thou", "##thsta", "##u",
    "##\360\237\230\200", "'", ",", "-", ".", "0", "1", "1ba", "1e", "1er", "1in", "1re", "2",
    "20", "207", "7", "[CLS]", "[MASK]", "[PAD]", "[SEP]", "[UNK]", "a", "an", "b", "ba", "baba",
    "bae", "baer", "bain", "balo", "baou", "bare", "basta", "bath", "d", "e", "eba", "ee", "eer",
    "ein", "elo", "end", "eou", "er", "erba", "ere", "erin", "erou", "erre", "esta", "eth", "g",
    "h", "i", "in", "inba", "ine", "iner", "inin", "innd", "inou", "inre", "inth", "l", "ll",
    "lo", "n", "nd", "ndba", "nde", "ndou", "o", "ou", "ouba", "oue", "ouin", "oure", "ousta",
    "q", "qu", "r", "re", "reba", "ree", "rein", "relo", "reou", "rere", "resta", "s", "sta",
    "staba", "stae", "stain", "staou", "stare", "t", "th", "thba", "ther", "thre", "thth", "u",
    "\344\270\255", "\360\237\230\200",
};
