// SPDX-License-Identifier: Apache-2.0
/** gallery_cards.tsx - the models that come with the page: what each has read and writes, and what
 *  one may do with it. */
import { bytes, count, loss, roughCount } from '../format';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import {
  cancelFiles,
  downloadFetched,
  filesState,
  trainOpenedModel,
} from '../state/files';
import { notify } from '../state/notices';
import { openView } from '../state/route';
import { useRun } from '../state/run';
import { useStore } from '../store';
import { CARDS, type GalleryCard, galleryFile } from './cards';
import { fileNameOf, openCard, openToPlay } from './open_card';
import './gallery.css';

async function play(card: GalleryCard, where: 'write' | 'think'): Promise<void> {
  if (await openToPlay(card)) openView(where);
}

async function train(card: GalleryCard): Promise<void> {
  if (await openCard(card)) await trainOpenedModel();
}

async function take(card: GalleryCard): Promise<void> {
  await downloadFetched(fileNameOf(card), () => galleryFile(card));
  const { problem } = filesState.get();
  if (problem !== '') notify('error', problem);
}

export default function GalleryCards() {
  const running = useRun((s) => s.phase === 'running' || s.phase === 'preparing');
  const busy = useStore(filesState, (f) => f.busy);
  const off = running || busy !== '';
  return (
    <section class="stack" aria-labelledby="gallery-title">
      <div>
        <h2 id="gallery-title">Models to play with</h2>
        <P class="muted">
          They came with this page, and were made by the same engine.
          {running && ' While your own model learns, they can only be downloaded.'}
        </P>
        {busy !== '' && <Wait words={busy} onCancel={cancelFiles} />}
      </div>
      <div class="gallery-cards">
        {CARDS.map((card) => (
          <Card key={card.name} title={card.title} aside={bytes(card.bytes)}>
            <P class="small">{card.read}</P>
            <div class="gallery-samples">
              <figure>
                <figcaption>It read</figcaption>
                <pre tabIndex={0}>{card.excerpt}</pre>
              </figure>
              <figure>
                <figcaption>It writes</figcaption>
                <pre tabIndex={0}>
                  {card.prompts[0]}
                  {card.written}
                </pre>
              </figure>
            </div>
            <P class="quiet number">
              {`${roughCount(card.parameters)} parameters, ${count(card.steps)} steps. Loss on ` +
                `text it has not seen: ${loss(card.loss)}. Licence of the text: ${card.licence}.`}
            </P>
            <div class="row">
              <Button icon="pen" disabled={off} onClick={() => void play(card, 'write')}>
                Let it write
              </Button>
              <Button icon="eye" disabled={off} onClick={() => void play(card, 'think')}>
                Watch it think
              </Button>
              <Button icon="play" disabled={off} onClick={() => void train(card)}>
                Train it on my text
              </Button>
              <Button kind="plain" icon="download" onClick={() => void take(card)}>
                Download
              </Button>
            </div>
          </Card>
        ))}
      </div>
    </section>
  );
}
