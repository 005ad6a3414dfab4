/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_forms.c - see suite_forms.h. What a form is, is written in Jinja, which the library runs on
 * a line as it runs chat templates, within limits.
 */
#include "eval/suite_forms.h"

#include "print/format.h"

#include <string.h>

/* The line is the only item of `line`: a comma behind its object would make it two. */
static const char before[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"line\":[";
static const char behind[] = "]}";

/* put writes a field as lines have them; answers without white space around them, since one space
 * stands before an answer. */
static const char form[] =
    "{%- macro put(s) -%}{{ s | replace('\\\\', '\\\\\\\\') | replace('\\t', '\\\\t') "
    "| replace('\\n', '\\\\n') }}{%- endmacro -%}"
    "{%- macro answer(s) -%}{{ '\\t' }}{{ put(s | string | trim) }}{%- endmacro -%}"
    "{%- if line | length != 1 or line[0] is not mapping -%}"
    "{{ raise_exception('want one object') }}{%- endif -%}"
    "{%- set d = line[0] -%}{%- set q = d -%}"
    "{%- if d.question is mapping -%}{%- set q = d.question -%}{%- endif -%}"
    "{%- set lead = namespace(text='') -%}"
    "{%- for key in ['article', 'passage', 'context'] -%}{%- if d[key] -%}"
    "{%- if d[key] is not string -%}{{ raise_exception('want a text: ' ~ key) }}{%- endif -%}"
    "{%- set lead.text = lead.text ~ d[key] ~ '\n' -%}{%- endif -%}{%- endfor -%}"
    "{%- set asked = q.stem or q.question or q.question_stem or q.prompt or q.ctx or q.query "
    "or q.goal or q.input or q.text -%}"
    "{%- if asked is not string -%}"
    "{{ raise_exception('want a question: question, question_stem, prompt, ctx, query, goal, input "
    "or text') }}{%- endif -%}"
    "{%- set all = q.choices or q.endings or q.options or [] -%}{%- set labels = [] -%}"
    "{%- if d.sol1 is defined and d.sol2 is defined -%}{%- set all = [d.sol1, d.sol2] -%}"
    "{%- elif all is mapping -%}{%- set labels = all.label or [] -%}{%- set all = all.text -%}"
    "{%- elif all and all[0] is mapping -%}"
    "{%- set labels = all | map(attribute='label') | list -%}"
    "{%- set all = all | map(attribute='text') | list -%}{%- endif -%}"
    "{%- if all -%}"
    "{%- set ns = namespace(at=-1, right=d.answer) -%}"
    "{%- for key in ['gold', 'label', 'answerKey'] -%}"
    "{%- if d[key] is defined -%}{%- set ns.right = d[key] -%}{%- endif -%}{%- endfor -%}"
    "{%- set right = ns.right | string | trim -%}"
    "{%- for choice in all -%}{%- set i = loop.index0 -%}"
    "{%- if ns.at < 0 and (labels[i] | string == right if labels else (i | string == right "
    "or 'ABCDEFGHIJKLMNOP'[i] == right)) -%}{%- set ns.at = i -%}{%- endif -%}{%- endfor -%}"
    "{%- set place = ns.at -%}"
    "{%- for choice in all -%}{%- if choice | string | trim == right -%}"
    "{%- if ns.at < 0 -%}{%- set ns.at = loop.index0 -%}"
    "{%- elif ns.right is string and not labels and all[place] | string | trim != right -%}"
    "{{ raise_exception('want a right answer that is either the text of one or the place or letter "
    "of one, have both: ' ~ right) }}{%- endif -%}{%- endif -%}{%- endfor -%}"
    "{%- if ns.at < 0 -%}{{ raise_exception('want the right answer: answerKey, label, gold or "
    "answer, which is a label, a place from 0, a letter or the text of one') }}{%- endif -%}"
    "{{ put(lead.text ~ asked) }}{{ answer(all[ns.at]) }}"
    "{%- for choice in all -%}{%- if loop.index0 != ns.at -%}{{ answer(choice) }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- else -%}"
    "{%- set right = d.answer or d.target or d.completion or d.response -%}"
    "{%- if right is string -%}{{ put(lead.text ~ asked) }}{{ answer(right) }}"
    "{%- elif d.text is string and d.text == asked and ' ' in asked | trim -%}"
    "{%- set cut = (asked | trim).rsplit(' ', 1) -%}{{ put(lead.text ~ cut[0]) }}{{ answer(cut[1]) }}"
    "{%- else -%}{{ raise_exception('want answers: choices, endings, options, sol1 and sol2, or one "
    "that is a text: answer, target, completion or response') }}{%- endif -%}{%- endif -%}";

bool tg_suite_is_json(const char *name) {
    const size_t n = strlen(name);
    return n > 6 && strcmp(name + n - 6, ".jsonl") == 0;
}

static bool is_blank(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') return false;
    return true;
}

static bool add(tg_app_buffer *b, const char *text, size_t n) {
    return tg_app_buffer_add(b, text, n) == 0;
}

static tg_status put_line(tg_app *app, const tg_tokenizer *tok, const char *text, size_t n,
                          tg_app_buffer *json, tg_app_buffer *out) {
    json->n = 0;
    tg_status s = TG_E_MEMORY;
    if (add(json, before, sizeof before - 1) && add(json, text, n) &&
        add(json, behind, sizeof behind - 1))
        s = tg_tokenizer_render(app->ctx, tok, form, json->bytes, json->n, 0, tg_app_buffer_add,
                                out);
    return s;
}

int tg_suite_from_json(tg_app *app, const tg_tokenizer *tok, const char *name, const char *bytes,
                       size_t n_bytes, tg_app_buffer *out) {
    tg_app_buffer json = { 0 };
    size_t number = 0;
    tg_status s = TG_OK;
    for (size_t at = 0; s == TG_OK && at < n_bytes;) {
        const char *nl = memchr(bytes + at, '\n', n_bytes - at);
        const size_t n = nl ? (size_t)(nl - (bytes + at)) : n_bytes - at;
        number++;
        if (!is_blank(bytes + at, n)) s = put_line(app, tok, bytes + at, n, &json, out);
        if (s == TG_OK && !add(out, "\n", 1)) s = TG_E_MEMORY;
        at += n + 1;
    }
    tg_app_buffer_free(&json);
    if (s == TG_OK) return TG_ARGS_GO_ON;
    if (s == TG_E_MEMORY) return tg_app_failed(app, app->ctx, s, TG_READING);
    char safe[256];
    tg_app_error(app, "%s: line %zu: %s", tg_fmt_safe(safe, sizeof safe, name), number,
                 tg_app_why(app->ctx, s));
    return TG_EXIT_USAGE;
}
