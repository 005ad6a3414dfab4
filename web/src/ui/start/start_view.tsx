// SPDX-License-Identifier: Apache-2.0
/**
 * start_view.tsx - the whole way on one page: a model at work with the button to train one's own, the
 * text and the size that it will have, and the models that came with the page. The moving parts come
 * as scripts of their own, behind the first paint.
 */
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Later } from '../parts/later';
import { Advice } from '../model/forecast_card';
import { SizePicker } from '../model/size_picker';
import { TokensChoice } from '../model/tokens_choice';
import { paramCount } from '../model/families';
import { vocabOf } from '../run/settings';
import { count, duration, loss, roughCount } from '../format';
import { StartButton } from '../run/run_buttons';
import { useEngine } from '../engine';
import { forecast } from '../state/forecast';
import { textName, textState } from '../state/text';
import { openView, settings } from '../state/route';
import { useRun } from '../state/run';
import { startTour } from '../state/tour';
import { useStore } from '../store';
import { TextBox } from '../text/text_box';
import { WantedText } from '../text/wanted_text';
import { Bar } from '../parts/stat';
import { P } from '../parts/term';
import './start.css';

export default function StartView() {
  const phase = useRun((s) => s.phase);
  // The moving parts can do nothing before it is there.
  const engine = useEngine().engine !== null;
  return (
    <div class="stack">
      <WantedText />
      <section class="card start-hero" aria-label="A small model at work">
        <div class="start-stage">
          {engine && <Later load={loadHero} />}
        </div>
        <div class="start-action">
          <div class="start-go">
            <StartButton big />
          </div>
          <Summary />
        </div>
      </section>
      <div class="columns">
        <Card title="Text" class="start-text">
          <TextBox rows={13} />
        </Card>
        <div class="stack">
          <Card title="Model">
            <SizePicker few />
            <TokensChoice />
            <Warnings />
            {phase !== 'idle' && phase !== 'preparing' && <RunNow />}
            <div class="row start-more">
              <Button kind="plain" onClick={() => openView('model')}>
                Other sizes
              </Button>
              <Button kind="plain" onClick={() => openView('run')}>
                All settings
              </Button>
            </div>
          </Card>
        </div>
      </div>
      <Explain />
      <div class="row start-tour">
        <Button icon="arrow" onClick={startTour}>
          Show me around, in five stops
        </Button>
      </div>
      {engine && <Later load={loadGallery} />}
    </div>
  );
}

const loadHero = () => import('../gallery/hero').then((m) => m.Hero);
const loadGallery = () => import('../gallery/gallery_cards').then((m) => m.default);

/** What Start will make. */
function Summary() {
  const s = useStore(settings);
  const text = useStore(textState, (t) => textName(t.origin));
  const { value } = useStore(forecast);
  const time = value && value.seconds > 0 ? `, about ${duration(value.seconds)}` : '';
  return (
    <P class="start-summary">
      Your own model: {roughCount(paramCount(s, vocabOf(s)))} parameters learn “<span>{text}</span>” in {count(s.steps)}{' '}
      steps{time}. Here, in this tab.
    </P>
  );
}

function Warnings() {
  const { value } = useStore(forecast);
  return value && <Advice f={value} most={2} />;
}

/** The run that is open, above Start. */
function RunNow() {
  const s = useRun();
  return (
    <div class="stack-tight">
      <Bar label="Share of the steps that are done" share={s.total > 0 ? s.step / s.total : 0} />
      <P class="small muted number">
        Step {count(s.step)} of {count(s.total)}, loss {loss(s.loss)}
      </P>
      <div class="row">
        <Button icon="pulse" onClick={() => openView('live')}>
          Watch it
        </Button>
      </div>
    </div>
  );
}

function Explain() {
  return (
    <ol class="start-explain" aria-label="What happens">
      <li>
        <h3>It reads</h3>
        <P>
          Again and again it gets a few passages of your text, and guesses each next character from
          those before.
        </P>
      </li>
      <li>
        <h3>It is corrected</h3>
        <P>
          {'Each wrong guess moves its parameters a little. The loss, which is its surprise, ' +
            'falls. You see that live.'}
        </P>
      </li>
      <li>
        <h3>It writes</h3>
        <P>
          Guessing one character after the other, it writes text of its own: noise at first, then
          words, then sentences.
        </P>
      </li>
    </ol>
  );
}
