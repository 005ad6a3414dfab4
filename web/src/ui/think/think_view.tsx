// SPDX-License-Identifier: Apache-2.0
/**
 * think_view.tsx - Watch it think: everything that the model in hand computes over a short text, as
 * it is now; while it learns, the view follows.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Model } from '../../lib/index';
import { plainError } from '../plain_error';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Check, Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { current } from '../state/current';
import { notify } from '../state/notices';
import { textState } from '../state/text';
import { useStore } from '../store';
import { NeedModel } from '../write/need_model';
import { AblateCard } from './ablate_card';
import { AttentionCard } from './attention_card';
import { markAt, spell } from './characters';
import { DrawnModel } from './drawn_model';
import { excerpt } from './excerpt';
import { LensCard } from './lens_card';
import { choices, meanLoss, nextAt } from './maths';
import { NextBytes } from './next_bytes';
import { PatchCard } from './patch_card';
import { type Spelling, SpellingContext, spellingOf } from './spelling';
import { MOST_TOKENS, thinkState, watchTraining } from './state';
import { TextStrip } from './text_strip';
import { Mark } from './token';
import { useJob, useWatched } from './watch';
import './think.css';

/** The text as tokens, at most `most`; the same array until the text changes. */
function useTokens(model: Model | null, text: string, most: number): [Int32Array | null, number] {
  const [tokens, setTokens] = useState<{ ids: Int32Array; cut: number } | null>(null);
  useEffect(() => {
    if (!model) return;
    let late = false;
    // Typing is not interrupted by a run for every key.
    const timer = setTimeout(
      () => {
        model.tokenizer.encode(text).then(
          (all) => {
            if (!late) setTokens({ ids: all.slice(0, most), cut: Math.max(0, all.length - most) });
          },
          () => {
            if (!late) setTokens(null);
          },
        );
      },
      tokens ? 200 : 0,
    );
    return () => {
      late = true;
      clearTimeout(timer);
    };
  }, [model, text, most]);
  return [tokens && tokens.ids.length > 0 ? tokens.ids : null, tokens?.cut ?? 0];
}

export default function ThinkView() {
  const model = useStore(current, (c) => c?.model ?? null);
  useEffect(watchTraining, []);
  return model ? <Watched model={model} /> : <NeedModel what="look into" />;
}

/** Lets the model write the text that is looked at. */
function useOwnText(model: Model) {
  const job = useJob();
  const seed = useRef(1);
  const write = () =>
    job.start(async (signal) => {
      const session = await model.session();
      try {
        let text = '';
        const made = session.generate('\n', {
          tokens: 48,
          temperature: 0.8,
          seed: seed.current++,
          signal,
        });
        for await (const piece of made) text += piece.text;
        if (!signal.aborted && text.trim() !== '') thinkState.patch({ text: text.trimStart() });
      } finally {
        session.free();
      }
    });
  return { ...job, write };
}

/** Characters are told from other tokens by what was trained. */
function useSpellingOf(model: Model): Spelling {
  const trained = useStore(current, (c) => c?.unit ?? 'byte');
  return useMemo(() => {
    const spelling = spellingOf(model.tokenizer);
    return spelling.unit === 'token' && trained === 'character'
      ? { ...spelling, unit: trained }
      : spelling;
  }, [model, trained]);
}

function Watched({ model }: { model: Model }) {
  const { text, position: wanted, follow } = useStore(thinkState);
  const ctx = useStore(current, (c) => c?.config.ctx ?? MOST_TOKENS);
  const label = useStore(current, (c) => c?.label ?? '');
  const blob = useStore(textState, (t) => t.blob);
  const most = Math.min(ctx, MOST_TOKENS);
  const [tokens, cut] = useTokens(model, text, most);
  const [depth, setDepth] = useState(-1);
  const own = useOwnText(model);
  const seen = useWatched(
    tokens && ((signal) => model.probe(tokens, [], undefined, { signal })),
    [model, tokens],
    follow,
  );
  const probe = seen.value;
  const spelling = useSpellingOf(model);
  const { unit } = spelling;
  if (probe) spell(probe.tokens, spelling);

  const n = probe?.tokens.length ?? 1;
  const position = Math.min(wanted, n - 1);
  const select = (t: number) => thinkState.patch({ position: t });
  const predicted = probe
    ? Array.from(probe.tokens, (id, t) => (t === 0 ? NaN : (nextAt(probe, t - 1)[id] ?? 0)))
    : [];
  const p = probe && nextAt(probe, position);
  const actual = probe && position + 1 < n ? (probe.tokens[position + 1] as number) : -1;

  return (
    <SpellingContext.Provider value={spelling}>
      <div class="stack">
      <Card title="The text" aside={probe ? `${label}, step ${seen.step}` : ''}>
        <Field
          label="A short text for the model to read"
          help={
            cut > 0 ? `The first ${n} ${unit}s are looked at; ${cut} more are left out.` : undefined
          }
        >
          {({ id, describedBy }) => (
            <textarea
              id={id}
              class="input think-text"
              rows={2}
              spellcheck={false}
              aria-describedby={describedBy}
              value={text}
              onInput={(e) => thinkState.patch({ text: e.currentTarget.value })}
            />
          )}
        </Field>
        <div class="row spread">
          <div class="row">
            {blob && (
              <Button
                icon="text"
                onClick={() =>
                  void excerpt(blob, most).then(
                    (found) => thinkState.patch({ text: found }),
                    (e: unknown) => notify('error', plainError(e)),
                  )
                }
              >
                A passage of the text
              </Button>
            )}
            <Button icon="pen" disabled={own.running} onClick={own.write}>
              Let the model write one
            </Button>
          </div>
          <Check
            label="Follow while it learns"
            checked={follow}
            onChange={(on) => thinkState.patch({ follow: on })}
          />
        </div>
        {text === '' && <Notice kind="info">Type at least one character.</Notice>}
        {(seen.error ?? own.error) !== null && (
          <Notice kind="error">{plainError(seen.error ?? own.error)}</Notice>
        )}
        {probe && (
          <>
            <TextStrip
              tokens={probe.tokens}
              seen={predicted}
              position={position}
              onSelect={select}
            />
            <P class="quiet number">
              Stronger ground: the model saw it coming. Loss on this text{' '}
              {n > 1 ? meanLoss(probe).toFixed(3) : '–'}. Choose a {unit}: the cards below look there.
            </P>
          </>
        )}
      </Card>
      {probe && p && tokens && (
        <>
          <DrawnModel probe={probe} position={position} />
          <Card
            class="think-card"
            title="What comes next"
            aside={
              <>
                after {unit} {position + 1}, <Mark token={markAt(probe.tokens, position)} />
              </>
            }
          >
            <NextBytes
              label={`Likeliest ${unit}s after ${markAt(probe.tokens, position).name}`}
              p={p}
              actual={actual}
            />
            <P class="quiet number">
              As undecided as between {choices(p).toFixed(1)} equally likely {unit}s.
            </P>
          </Card>
          <AttentionCard probe={probe} position={position} />
          <LensCard
            probe={probe}
            position={position}
            depth={depth < 0 ? probe.layers : Math.min(depth, probe.layers)}
            onSelect={(t, d) => {
              select(t);
              setDepth(d);
            }}
          />
          <AblateCard
            model={model}
            tokens={tokens}
            layers={probe.layers}
            heads={probe.heads}
            position={position}
            follow={follow}
          />
        </>
      )}
      <PatchCard model={model} ctx={ctx} />
    </div>
    </SpellingContext.Provider>
  );
}
